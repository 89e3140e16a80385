package myscan

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/datalink-go/datalink/plugins/internal/charset"
	"github.com/datalink-go/datalink/sdk/batch"
)

// column is a column of a table and how its values are read.
type column struct {
	batch batch.Column
	base  string // DATA_TYPE
	// bound says that a comparison with a literal follows the order of ORDER BY, so
	// that the column can bound a chunk.
	bound bool
	// ordered says that values sort as their key bytes' values do.
	ordered bool
	set     string         // character set in which values come; "" = UTF-8
	decode  charset.Decode // nil where values are UTF-8 or nothing knows the set
}

// def is a row of information_schema.COLUMNS.
type def struct {
	name, base, full, charset, collation, extra, generated string
	nullable                                               bool
	length, precision, scale, fraction                     int64
	fallback                                               string // default
	srid                                                   int64
}

func newColumn(d *def, maria bool) (column, error) {
	if name, ok := charset.Name(d.charset); ok {
		d.charset = name
	}
	c := column{base: d.base, bound: true, set: d.charset}
	if !charset.UTF8(c.set) {
		c.decode = charset.For(c.set)
	}
	b := &c.batch
	b.Name, b.Native, b.Default, b.SRID = d.name, d.full, d.fallback, uint32(d.srid)
	flag := func(on bool, f batch.ColumnFlags) {
		if on {
			b.Flags |= f
		}
	}
	extra := strings.ToLower(d.extra)
	flag(d.nullable, batch.Nullable)
	flag(strings.Contains(extra, "auto_increment"), batch.AutoIncrement)
	flag(strings.Contains(extra, "invisible"), batch.Hidden)
	flag(d.generated != "", batch.Generated)
	flag(d.generated != "" && strings.Contains(extra, "virtual"), batch.Virtual)
	unsigned := strings.Contains(d.full, "unsigned")
	ints := func(signed, un batch.Type) {
		c.ordered = true
		if b.Type = signed; unsigned {
			b.Type = un
		}
	}
	text := func() {
		b.Charset, b.Collation, b.Type = d.charset, d.collation, batch.String
		if d.charset == "" {
			b.Type, c.ordered = batch.Bytes, true
		}
		c.ordered = c.ordered || strings.HasSuffix(d.collation, "_bin") && strings.HasPrefix(d.charset, "utf8")
	}
	switch d.base {
	case "tinyint":
		ints(batch.Int8, batch.Uint8)
	case "smallint":
		ints(batch.Int16, batch.Uint16)
	case "mediumint", "int":
		ints(batch.Int32, batch.Uint32)
	case "bigint":
		ints(batch.Int64, batch.Uint64)
	case "float":
		b.Type, c.bound = batch.Float32, false
	case "double":
		b.Type, c.bound = batch.Float64, false
	case "decimal":
		b.Type, b.Precision, b.Scale = batch.Decimal, uint32(d.precision), uint32(d.scale)
	case "bit":
		b.Type, b.Length, c.bound = batch.Bit, uint32(d.precision), false
	case "year":
		b.Type, c.ordered = batch.Year, true
	case "date":
		b.Type = batch.Date
	case "time":
		b.Type, b.Scale = batch.Time, uint32(d.fraction)
	case "datetime":
		b.Type, b.Scale = batch.DateTime, uint32(d.fraction)
	case "timestamp":
		b.Type, b.Scale = batch.Timestamp, uint32(d.fraction)
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		text()
		if d.base == "char" || d.base == "varchar" {
			b.Length = uint32(d.length)
		}
	case "binary", "varbinary":
		b.Type, b.Length, c.ordered = batch.Bytes, uint32(d.length), true
	case "tinyblob", "blob", "mediumblob", "longblob":
		b.Type, c.ordered = batch.Bytes, true
	case "enum", "set":
		b.Type, b.Charset, b.Collation, b.Values, c.bound = batch.Enum, d.charset, d.collation, labels(d.full), false
		if d.base == "set" {
			b.Type = batch.Set
		}
	case "json":
		b.Type, c.bound = batch.JSON, false
		if maria {
			b.Type = batch.String
		}
	case "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection", "geometrycollection":
		b.Type, c.bound = batch.Geometry, false
	case "vector":
		b.Type, c.bound = batch.Vector, false
	case "uuid":
		b.Type, c.bound = batch.UUID, true
	case "inet4", "inet6":
		b.Type = batch.Inet
	default:
		return c, fmt.Errorf("column %s has the type %s, which this reader does not know", d.name, d.full)
	}
	return c, nil
}

// labels reads the labels of enum('a','b').
func labels(full string) []string {
	_, list, _ := strings.Cut(full, "(")
	list = strings.TrimSuffix(list, ")")
	var out []string
	for len(list) > 0 {
		list = strings.TrimLeft(list, ", ")
		if !strings.HasPrefix(list, "'") {
			break
		}
		var b strings.Builder
		i := 1
		for ; i < len(list); i++ {
			if list[i] == '\'' {
				if i+1 < len(list) && list[i+1] == '\'' {
					i++
				} else {
					break
				}
			}
			b.WriteByte(list[i])
		}
		out = append(out, b.String())
		list = list[min(i+1, len(list)):]
	}
	return out
}

// put appends a value as the server sent it: numbers and times as text, all else as
// its bytes.
func (c *column) put(out *batch.Builder, v []byte, scratch *[]byte) error {
	bad := func() error {
		return fmt.Errorf("column %s: %q is no value of type %s", c.batch.Name, v, c.batch.Native)
	}
	switch c.batch.Type {
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return bad()
		}
		out.PutInt(n)
	case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year:
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil {
			return bad()
		}
		out.PutUint(n)
	case batch.Float32, batch.Float64:
		bits := 64
		if c.batch.Type == batch.Float32 {
			bits = 32
		}
		f, err := strconv.ParseFloat(string(v), bits)
		if err != nil {
			return bad()
		}
		out.PutFloat(f)
	case batch.Decimal:
		out.PutBytes(plainDecimal(v))
	case batch.Date, batch.DateTime, batch.Timestamp, batch.Time:
		n, ok := c.moment(v)
		if !ok {
			return bad()
		}
		out.PutInt(n)
	case batch.UUID:
		u, err := hex.DecodeString(strings.ReplaceAll(string(v), "-", ""))
		if err != nil || len(u) != 16 {
			return bad()
		}
		out.PutBytes(u)
	case batch.String, batch.Enum, batch.Set, batch.JSON, batch.Inet:
		text, ok := c.text(v, scratch)
		if !ok {
			out.PutRaw(c.set, v)
			return nil
		}
		out.PutBytes(text)
	case batch.Bit:
		// As many bytes as the width has, whatever the server sends.
		n := int(c.batch.Length+7) / 8
		buf := make([]byte, n)
		if len(v) > n {
			v = v[len(v)-n:]
		}
		copy(buf[n-len(v):], v)
		out.PutBytes(buf)
	case batch.Bytes, batch.Geometry, batch.Vector:
		out.PutBytes(v)
	default:
		return bad()
	}
	return nil
}

// text returns characters as UTF-8, and false where they have none.
func (c *column) text(v []byte, scratch *[]byte) ([]byte, bool) {
	switch {
	case c.decode != nil:
		text, ok := c.decode((*scratch)[:0], v)
		*scratch = text
		return text, ok
	case c.set == "ascii":
		return v, !bytes.ContainsFunc(v, func(r rune) bool { return r >= utf8.RuneSelf })
	case c.set == "", c.set == "binary", charset.UTF8(c.set):
		return v, utf8.Valid(v)
	}
	return nil, false // of a character set that nothing here knows
}

// plainDecimal drops the zeros that ZEROFILL puts in front.
func plainDecimal(v []byte) []byte {
	for len(v) > 1 && v[0] == '0' && v[1] != '.' {
		v = v[1:]
	}
	return v
}

// moment reads dates and times as the server prints them.
func (c *column) moment(v []byte) (int64, bool) {
	if c.batch.Type == batch.Time {
		neg := bytes.HasPrefix(v, []byte("-"))
		v = bytes.TrimPrefix(v, []byte("-"))
		h, rest, ok := bytes.Cut(v, []byte(":"))
		hours, err := strconv.Atoi(string(h))
		if !ok || err != nil || len(rest) < 5 || rest[2] != ':' {
			return 0, false
		}
		us, ok := clock(append([]byte("00:"), rest...))
		us += int64(hours) * 3600e6
		if neg {
			us = -us
		}
		return us, ok
	}
	if len(v) < 10 || v[4] != '-' || v[7] != '-' {
		return 0, false
	}
	year, e1 := strconv.Atoi(string(v[:4]))
	month, e2 := strconv.Atoi(string(v[5:7]))
	day, e3 := strconv.Atoi(string(v[8:10]))
	if e1 != nil || e2 != nil || e3 != nil {
		return 0, false
	}
	if c.batch.Type == batch.Date {
		return int64(batch.PackDate(year, month, day)), len(v) == 10
	}
	var us int64
	if len(v) > 10 {
		var ok bool
		if us, ok = clock(v[11:]); !ok {
			return 0, false
		}
	}
	s := us / 1e6
	civil := batch.Civil{Year: year, Month: month, Day: day, Hour: int(s / 3600), Minute: int(s / 60 % 60), Second: int(s % 60), Mic: int(us % 1e6)}
	if c.batch.Type == batch.DateTime {
		return civil.Pack(), true
	}
	if year == 0 {
		return batch.ZeroTimestamp, true
	}
	return civil.UnixMicro(), true
}

// clock reads HH:MM:SS[.f].
func clock(v []byte) (int64, bool) {
	if len(v) < 8 || v[2] != ':' || v[5] != ':' {
		return 0, false
	}
	h, e1 := strconv.Atoi(string(v[:2]))
	m, e2 := strconv.Atoi(string(v[3:5]))
	s, e3 := strconv.Atoi(string(v[6:8]))
	if e1 != nil || e2 != nil || e3 != nil {
		return 0, false
	}
	us := int64(h*3600+m*60+s) * 1e6
	if len(v) == 8 {
		return us, true
	}
	f := string(v[9:])
	for len(f) < 6 {
		f += "0"
	}
	n, err := strconv.Atoi(f)
	return us + int64(n), v[8] == '.' && len(f) == 6 && err == nil
}

// literal prints a key value for SQL.
func literal(col *batch.Column, v *batch.Value) (string, error) {
	if set, data, raw := v.Raw(); raw {
		// In the column's own character set: as bytes it would compare in another
		// order than that of ORDER BY.
		if set == "" {
			set = "binary"
		}
		return "_" + set + " 0x" + hex.EncodeToString(data), nil
	}
	switch col.Type {
	case batch.Bytes:
		if len(v.Bytes()) == 0 {
			return "''", nil
		}
		return "0x" + hex.EncodeToString(v.Bytes()), nil
	case batch.String:
		// In hex, whatever the SQL mode says of backslashes.
		if len(v.Bytes()) == 0 {
			return "''", nil
		}
		return "_utf8mb4 0x" + hex.EncodeToString(v.Bytes()), nil
	}
	t, ok := batch.AppendText(nil, col, v)
	if !ok {
		return "", fmt.Errorf("a key column of type %s cannot bound a chunk", col.Native)
	}
	switch col.Type {
	case batch.Date, batch.Time, batch.DateTime, batch.Timestamp, batch.UUID, batch.Inet:
		return "'" + string(t) + "'", nil
	}
	return string(t), nil
}
