#!/usr/bin/env python3
"""Reads blocks of sdk/PROTOCOL.md and prints each as one line of JSON.

usage: decode.py BLOCK...        the blocks are one stream, in order

It uses the standard library alone and was written from the page: it shares no
code with the Go package. A block that is not of the format ends the program
with "corrupt: ..." and status 1.
"""
import json
import struct
import sys

TYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 decimal string bytes bit date time "
         "datetime timestamp year json enum set geometry uuid array map vector interval timetz inet native").split()
KINDS = "insert update delete read truncate ddl range heartbeat origin state".split()
FIXED = {"bool": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
         "uint64": "Q", "float32": "f", "float64": "d", "date": "i", "time": "q", "datetime": "q", "timestamp": "q", "year": "H"}
WIDTH = {"uuid": 16, "interval": 16, "timetz": 12}
NATIVE_IS_TEXT = 32


class Corrupt(Exception):
    pass


def need(ok, *what):
    if not ok:
        raise Corrupt(" ".join(map(str, what)))


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        need(n <= len(self.data) - self.at, n, "bytes wanted,", len(self.data) - self.at, "left")
        self.at += n
        return self.data[self.at - n:self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)

    def end(self):
        need(self.at == len(self.data), len(self.data) - self.at, "bytes left over")

    def fixed(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def u8(self):
        return self.take(1)[0]

    def bool(self):
        b = self.u8()
        need(b <= 1, "byte", b, "is no truth value")
        return b == 1

    def uvarint(self, bits=64):
        v = 0
        for i in range(10):
            b = self.u8()
            v |= (b & 0x7F) << (7 * i)
            if b < 0x80:
                need(v < 1 << bits, "number of more than", bits, "bits")
                return v
        raise Corrupt("number of more than 10 bytes")

    def varint(self):
        u = self.uvarint()
        return (u >> 1) ^ -(u & 1)

    def bytes(self):
        return self.take(self.uvarint())

    def text(self):
        return text(self.bytes())

    def list(self, item):
        n = self.uvarint()
        need(n <= len(self.data) - self.at, n, "items in", len(self.data) - self.at, "bytes")
        return [item() for _ in range(n)]

    def bitmap(self, n):
        m = self.take((n + 7) // 8)
        need(n % 8 == 0 or m[-1] >> (n % 8) == 0, "bits behind the end of a bitmap")
        return [bool(m[i // 8] >> (i % 8) & 1) for i in range(n)]


def text(b):
    try:
        return b.decode("utf-8")
    except UnicodeDecodeError as e:
        raise Corrupt("text is not UTF-8: %s" % e) from e


def bits(v):
    return "bits:" + struct.pack("<d", v).hex()


def civil(v, full):
    limit = 63 if full else 31
    if v == (1 << limit) - 1:
        return "infinity"
    if v == -(1 << limit):
        return "-infinity"
    if not full:
        year, month, day = v >> 9, v >> 5 & 15, v & 31
    else:
        year, month, day = v >> 46, v >> 42 & 15, v >> 37 & 31
    out = "%s%04d-%02d-%02d" % ("-" if year < 0 else "", abs(year), month, day)
    if full:
        out += " %02d:%02d:%02d.%06d" % (v >> 32 & 31, v >> 26 & 63, v >> 20 & 63, v & 0xFFFFF)
    return out


def float_bits(c, name):
    """A float as the bits of its double: NaN has no other exact form in JSON."""
    if name == "float64":
        return "bits:" + c.take(8).hex()
    raw = c.fixed("I")
    if raw & 0x7F800000 == 0x7F800000 and raw & 0x7FFFFF:  # keep the payload of a NaN
        return "bits:" + struct.pack("<Q", (raw >> 31) << 63 | 0x7FF << 52 | (raw & 0x7FFFFF) << 29).hex()
    return bits(struct.unpack("<f", struct.pack("<I", raw))[0])


def value(c, name, elem, flags):
    if name in ("float32", "float64"):
        return float_bits(c, name)
    if name in FIXED:
        v = c.fixed(FIXED[name])
        if name == "bool":
            need(v <= 1, "byte", v, "is no truth value")
            return v == 1
        if name in ("date", "datetime"):
            return civil(v, name == "datetime")
        return v
    if name == "uuid":
        return c.take(16).hex()
    if name == "interval":
        return {"months": c.fixed("i"), "days": c.fixed("i"), "micros": c.fixed("q")}
    if name == "timetz":
        return {"micros": c.fixed("q"), "offset": c.fixed("i")}
    b = c.bytes()
    v = Cursor(b)
    if name == "geometry":
        return {"srid": v.fixed("I"), "wkb": v.rest().hex()}
    if name == "array":
        dims = v.list(lambda: [v.uvarint(32), v.varint()])
        n = 1 if dims else 0
        for length, _ in dims:
            n *= length
        need(n <= 8 * len(b), n, "elements in", len(b), "bytes")
        out = [None if null else value(v, TYPES[elem - 1], 0, 0) for null in v.bitmap(n)]
        v.end()
        return {"dims": dims, "elements": out}
    if name == "map":
        out = v.list(lambda: [v.text(), v.text() if v.bool() else None])
        v.end()
        return out
    if name == "vector":
        return ["bits:" + v.take(4).hex() for _ in range(len(b) // 4)]
    if name in ("bytes", "bit") or name == "native" and not flags & NATIVE_IS_TEXT:
        return b.hex()
    return text(b)


def raw(b):
    v = Cursor(b)
    return {"raw": v.text(), "bytes": v.rest().hex()}


def of_column(c, col):
    return value(c, col["type"], col["elem"], col["flags"])


def image(data, schema):
    c, cols = Cursor(data), schema["columns"]
    flags = c.u8()
    need(flags < 16, "image flags", flags)
    maps = [c.bitmap(len(cols)) if flags >> i & 1 else [False] * len(cols) for i in range(4)]
    out = []
    for col, absent, null, unchanged, is_raw in zip(cols, *maps):
        need(absent + null + unchanged + is_raw <= 1, "column", col["name"], "is in two states")
        if absent or unchanged:
            out.append({"absent" if absent else "unchanged": True})
        elif null:
            out.append(None)
        elif is_raw:
            out.append(raw(c.bytes()))
        else:
            out.append(of_column(c, col))
    c.end()
    return out


def key(data, schema):
    c, out = Cursor(data), []
    for place in schema["key"]:
        col = schema["columns"][place]
        varying = col["type"] not in FIXED and col["type"] not in WIDTH
        if varying and c.data[c.at:c.at + 2] == b"\x80\x00":
            c.at += 2
            out.append(raw(c.bytes()))
        else:
            out.append(of_column(c, col))
    c.end()
    return out


def column(c):
    name, typ, elem = c.text(), c.u8(), c.u8()
    need(1 <= typ <= len(TYPES), "type", typ)
    need((TYPES[typ - 1] == "array") == (elem != 0) and elem <= len(TYPES), "element type", elem)
    return {"name": name, "type": TYPES[typ - 1], "elem": elem, "native": c.text(), "length": c.uvarint(32),
            "precision": c.uvarint(32), "scale": c.uvarint(32), "charset": c.text(), "collation": c.text(),
            "flags": c.uvarint(32), "srid": c.uvarint(32), "values": c.list(c.text), "default": c.text()}


def schema_of(data):
    c = Cursor(data)
    s = {"id": c.uvarint(32), "version": c.uvarint(), "source": c.text(), "namespace": c.text(), "table": c.text()}
    need(s["id"] != 0, "schema id 0")
    flags = c.u8()
    need(flags < 4, "schema flags", flags)
    s["primaryKey"], s["positional"] = bool(flags & 1), bool(flags & 2)
    s["columns"] = c.list(lambda: column(c))

    def places():
        out = c.list(c.uvarint)
        need(all(p < len(s["columns"]) for p in out), "column", out, "of", len(s["columns"]))
        return out

    s["key"] = places()
    s["uniques"] = c.list(lambda: {"name": c.text(), "columns": places()})
    s["foreignKeys"] = c.list(lambda: {
        "name": c.text(), "columns": places(), "refSchema": c.text(), "refTable": c.text(), "refColumns": c.list(c.text),
        "onDelete": c.text(), "onUpdate": c.text()})
    c.end()
    return s


def ddl(c):
    out = {"kind": c.u8()}
    need(1 <= out["kind"] <= 10, "kind of schema change", out["kind"])
    for field in ("namespace", "table", "oldName", "after", "statement", "default"):
        out[field] = c.text()
    has_column, part, whole = c.bool(), schema_of(c.bytes()), c.bytes()
    if has_column:
        need(part["columns"], "column announced, none there")
        out["column"] = part["columns"][0]
    if part["uniques"]:
        out["index"] = part["uniques"][0]
    if whole:
        out["schema"] = schema_of(whole)
    return out


def body(kind, data):
    c = Cursor(data)
    if kind == "truncate":
        out = None
    elif kind == "ddl":
        out = ddl(c)
    elif kind == "range":
        out = {f: c.bytes().hex() for f in ("lo", "hi", "low", "high")}
        out["last"] = c.bool()
        for f in ("keys", "kept"):
            out[f] = [k.hex() for k in c.list(c.bytes)]
    elif kind == "heartbeat":
        out = c.varint()
    elif kind == "origin":
        out = text(c.rest())
    else:
        out = {"key": c.text(), "version": c.uvarint(), "value": c.bytes().hex(), "deleted": c.bool()}
    c.end()
    return out


IMAGES = {"insert": (2,), "update": (2, 3), "delete": (1,), "read": (2,)}


def event(data, schemas):
    c = Cursor(data)
    kind, flags, sid, ordinal = c.u8(), c.u8(), c.uvarint(32), c.uvarint()
    need(1 <= kind <= len(KINDS), "kind", kind)
    kind = KINDS[kind - 1]
    out = {"kind": kind, "ordinal": ordinal}
    need((sid != 0) == (kind in IMAGES or kind in ("truncate", "range")), kind, "with schema", sid)
    schema = None
    if sid:
        need(sid in schemas, "unknown schema", sid)
        out["schema"], schema = sid, schemas[sid]
    if kind not in IMAGES:
        need(flags == 16, kind, "with flags", flags)
        out["body"] = body(kind, c.bytes())
        c.end()
        return out
    need(flags < 16 and flags & 3 in IMAGES[kind], kind, "with flags", flags)
    need(bool(flags & 4) == bool(schema["key"]) and (not flags & 8 or kind == "update"), "key flags", flags)
    for bit, name in ((1, "before"), (2, "after")):
        if flags & bit:
            out[name] = image(c.take(c.fixed("I")), schema)
    for bit, name in ((4, "key"), (8, "oldKey")):
        if flags & bit:
            out[name] = key(c.bytes(), schema)
    c.end()
    return out


def transaction(c):
    flags = c.u8()
    need(flags < 16, "transaction flags", flags)
    t = {"begins": bool(flags & 1), "ends": bool(flags & 2), "first": c.uvarint(32), "count": c.uvarint(32), "ordinal": c.uvarint()}
    t["start"] = c.bytes().hex() if flags & 4 else ""
    t["end"] = c.bytes().hex() if flags & 8 else ""
    t["committed"], t["id"] = c.varint(), c.text()
    t["covers"] = c.list(lambda: {"point": c.uvarint(32), "upto": c.uvarint()})
    need(t["ends"] or flags & 4, "no position before a transaction that goes on")
    return t


def block(data, schemas):
    need(len(data) >= 40, len(data), "bytes are no header")
    need(data[:4] == b"DLB\x01", "it begins with", data[:4])
    size, n, o, t, n_tx, s, n_schemas, zero = struct.unpack("<7IQ", data[4:40])
    need(size == len(data) and zero == 0, "size", size, "of", len(data))
    need(40 <= o <= t <= s <= size and t - o == 4 * n and (n or o == 40), "sections", o, t, s)
    places = list(struct.unpack("<%dI" % n, data[o:t])) + [o]
    need(places[0] == 40 and all(a <= b for a, b in zip(places, places[1:])), "offsets")
    out = {"schemas": [], "transactions": [], "events": []}
    c = Cursor(data[s:])
    for _ in range(n_schemas):
        raw_def = c.bytes()
        d = schema_of(raw_def)
        need(schemas.setdefault(d["id"], d) == d, "schema", d["id"], "comes again with another layout")
        out["schemas"].append(d)
    c.end()
    c, following = Cursor(data[t:s]), 0
    for _ in range(n_tx):
        tx = transaction(c)
        need(tx["first"] == following and tx["count"] <= n - following, "events of transactions")
        following += tx["count"]
        out["transactions"].append(tx)
    c.end()
    need(following == n, n - following, "events belong to no transaction")
    out["events"] = [event(data[a:b], schemas) for a, b in zip(places, places[1:])]
    return out


def main(files):
    schemas = {}
    for name in files:
        with open(name, "rb") as f:
            data = f.read()
        try:
            print(json.dumps(block(data, schemas)))
        except (Corrupt, struct.error) as e:
            sys.exit("corrupt: %s: %s" % (name, e))


if __name__ == "__main__":
    main(sys.argv[1:])
