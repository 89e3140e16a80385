package postgres

import (
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Object ids of built-in types, fixed in pg_type.dat.
const (
	oidBool        = 16
	oidBytea       = 17
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidText        = 25
	oidJSON        = 114
	oidFloat4      = 700
	oidFloat8      = 701
	oidInet        = 869
	oidCidr        = 650
	oidBpchar      = 1042
	oidVarchar     = 1043
	oidDate        = 1082
	oidTime        = 1083
	oidTimestamp   = 1114
	oidTimestampTZ = 1184
	oidInterval    = 1186
	oidTimeTZ      = 1266
	oidBit         = 1560
	oidVarbit      = 1562
	oidNumeric     = 1700
	oidUUID        = 2950
	oidJSONB       = 3802
)

// elements are the types whose values travel in arrays of their own binary form.
// All others travel as text and are cast.
var elements = map[uint32]struct {
	name  string
	array uint32
}{
	oidBool: {"bool", 1000}, oidBytea: {"bytea", 1001}, oidInt8: {"int8", 1016}, oidInt2: {"int2", 1005}, oidInt4: {"int4", 1007},
	oidText: {"text", 1009}, oidJSON: {"json", 199}, oidFloat4: {"float4", 1021}, oidFloat8: {"float8", 1022}, oidBpchar: {"bpchar", 1014},
	oidDate: {"date", 1182}, oidTime: {"time", 1183}, oidTimestamp: {"timestamp", 1115}, oidTimestampTZ: {"timestamptz", 1185},
	oidInterval: {"interval", 1187}, oidTimeTZ: {"timetz", 1270}, oidBit: {`"bit"`, 1561}, oidVarbit: {"varbit", 1563},
	oidNumeric: {"numeric", 1231}, oidUUID: {"uuid", 2951}, oidJSONB: {"jsonb", 3807},
}

// typeOf is the type that a column is created with. README.md has the table.
func typeOf(c *batch.Column) string {
	switch c.Type {
	case batch.Bool:
		return "boolean"
	case batch.Int8, batch.Int16, batch.Uint8, batch.Year:
		return "smallint"
	case batch.Int32, batch.Uint16:
		return "integer"
	case batch.Int64, batch.Uint32:
		return "bigint"
	case batch.Uint64:
		return "numeric(20)"
	case batch.Float32:
		return "real"
	case batch.Float64:
		return "double precision"
	case batch.Decimal:
		if c.Precision > 0 && c.Precision <= 1000 {
			return typeText("numeric", int(c.Precision), int(c.Scale))
		}
		return "numeric"
	case batch.Bytes, batch.Geometry:
		return "bytea"
	case batch.Bit:
		if c.Length > 0 {
			return typeText("bit", int(c.Length))
		}
		return "bit varying"
	case batch.Date:
		return "date"
	case batch.Time:
		if strings.HasPrefix(c.Native, "time without") || c.Native == "time(6) without time zone" {
			return "time"
		}
		return "interval"
	case batch.DateTime:
		return "timestamp"
	case batch.Timestamp:
		return "timestamptz"
	case batch.JSON, batch.Map:
		return "json"
	case batch.UUID:
		return "uuid"
	case batch.Array:
		e := elemColumn(c)
		return typeOf(&e) + "[]"
	case batch.Vector:
		return "real[]"
	case batch.Interval:
		return "interval"
	case batch.TimeTZ:
		return "timetz"
	case batch.Inet:
		if c.Native == "cidr" {
			return "cidr"
		}
		return "inet"
	case batch.Native:
		if c.Flags&batch.TextValue == 0 {
			return "bytea"
		}
	}
	return "text"
}

// elemColumn is the column of an array's elements.
func elemColumn(c *batch.Column) batch.Column {
	e := *c
	e.Type, e.Elem = c.Elem, batch.TypeInvalid
	e.Native = strings.TrimSuffix(c.Native, "[]")
	return e
}

// wire is how the values of a source's column go to a column of the target.
type wire struct {
	elem   uint32 // type of the array's elements
	cast   string // type that they are cast to; "" = none
	enc    encode // nil = they do not go
	found  string // what the target may not hold of the values, "" = nothing
	narrow bool   // values are looked at one by one
}

// array names the type of the parameter.
func (w *wire) array() string { return elements[w.elem].name + "[]" }

// native is a wire in the binary form of the target's type.
func native(i *info, e encode) wire { return wire{elem: i.oid, enc: e} }

// asText is a wire through text: into the types that hold text, and cast into
// all others.
func asText(i *info, e encode) wire {
	switch i.oid {
	case oidText, oidVarchar:
		return wire{elem: oidText, enc: e, narrow: true}
	case oidBpchar:
		return wire{elem: oidBpchar, enc: e, narrow: true}
	}
	return wire{elem: oidText, cast: i.cast, enc: e, narrow: true}
}

func (i *info) holdsText() bool { return i.oid == oidText || i.oid == oidVarchar || i.oid == oidBpchar }

// wireOf says how values of c go to a column of type i.
func wireOf(c *batch.Column, i *info) wire {
	if _, ok := elements[i.oid]; !ok && i.oid != oidVarchar && i.oid != oidInet && i.oid != oidCidr {
		return otherWire(c, i)
	}
	w := plainWire(c, i)
	if w.enc == nil && i.holdsText() && c.Type != batch.Bytes && c.Type != batch.Geometry && (c.Type != batch.Native || c.Flags&batch.TextValue != 0) {
		w = asText(i, encodeText)
	}
	if n := i.limit(); w.enc != nil && i.holdsText() && n >= 0 && int(c.Length) > n && (c.Type == batch.String || c.Type == batch.Bytes) {
		w.found = typeText("the source has up to", int(c.Length)) + " characters"
		w.found = strings.NewReplacer("(", " ", ")", "").Replace(w.found)
	}
	return w
}

func plainWire(c *batch.Column, i *info) wire {
	switch c.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year:
		return integerWire(c, i)
	case batch.Bit:
		return bitWire(c, i)
	case batch.Float32, batch.Float64:
		switch {
		case i.oid == oidFloat8:
			return native(i, encodeFloat8)
		case i.oid == oidFloat4:
			w := native(i, encodeFloat4)
			if c.Type == batch.Float64 {
				w.narrow, w.found = true, "it rounds doubles"
			}
			return w
		}
	case batch.Decimal:
		return decimalWire(c, i)
	case batch.String, batch.Enum, batch.Set:
		switch i.oid {
		case oidText, oidVarchar, oidBpchar, oidUUID, oidInet, oidCidr:
			return asText(i, encodeText)
		case oidJSON:
			return wire{elem: oidJSON, enc: encodeText, narrow: true}
		case oidJSONB:
			return wire{elem: oidJSONB, enc: encodeJSONB, narrow: true}
		}
	case batch.JSON, batch.Map:
		e, b := encode(encodeText), encode(encodeJSONB)
		if c.Type == batch.Map {
			e, b = encodeMap, nil
		}
		switch i.oid {
		case oidJSON:
			return wire{elem: oidJSON, enc: e, narrow: true}
		case oidJSONB:
			return wire{elem: oidJSONB, enc: b, narrow: true}
		case oidText, oidVarchar:
			return asText(i, e)
		}
	case batch.Bytes, batch.Geometry:
		if i.oid == oidBytea {
			return native(i, encodeBytes)
		}
	case batch.Date, batch.Time, batch.DateTime, batch.Timestamp, batch.Interval, batch.TimeTZ:
		return timeWire(c, i)
	case batch.UUID:
		if i.oid == oidUUID {
			return native(i, encodeBytes)
		}
	case batch.Inet:
		if i.oid == oidInet || i.oid == oidCidr {
			return asText(i, encodeText)
		}
	case batch.Native:
		switch {
		case c.Flags&batch.TextValue != 0:
			return asText(i, encodeText)
		case i.oid == oidBytea:
			return native(i, encodeBytes)
		}
	}
	return wire{}
}

// intRange is what an integer type holds.
func intRange(oid uint32) (lo, hi int64, ok bool) {
	switch oid {
	case oidBool:
		return 0, 1, true
	case oidInt2:
		return -1 << 15, 1<<15 - 1, true
	case oidInt4:
		return -1 << 31, 1<<31 - 1, true
	case oidInt8:
		return -1 << 63, 1<<63 - 1, true
	}
	return 0, 0, false
}

func integerWire(c *batch.Column, i *info) wire {
	width := map[batch.Type]struct {
		lo     int64
		hi     uint64
		digits int
	}{
		batch.Bool: {0, 1, 1}, batch.Int8: {-1 << 7, 1<<7 - 1, 3}, batch.Int16: {-1 << 15, 1<<15 - 1, 5}, batch.Int32: {-1 << 31, 1<<31 - 1, 10},
		batch.Int64: {-1 << 63, 1<<63 - 1, 19}, batch.Uint8: {0, 1<<8 - 1, 3}, batch.Uint16: {0, 1<<16 - 1, 5}, batch.Uint32: {0, 1<<32 - 1, 10},
		batch.Uint64: {0, 1<<64 - 1, 20}, batch.Year: {0, 9999, 4},
	}[c.Type]
	if lo, hi, ok := intRange(i.oid); ok {
		if i.oid == oidBool {
			w := native(i, encodeBool)
			if c.Type != batch.Bool {
				w.narrow, w.found = true, "it holds 0 and 1 alone"
				if strings.EqualFold(c.Native, "tinyint(1)") {
					w.found = ""
				}
			}
			return w
		}
		w := native(i, encodeInt)
		if width.lo < lo || width.hi > uint64(hi) {
			w.narrow, w.found = true, "it holds numbers up to "+formatInt(hi)+" alone"
		}
		return w
	}
	switch i.oid {
	case oidNumeric:
		w := native(i, encodeNumber)
		if p, s, ok := i.digits(); ok {
			w.narrow = true
			if p-s < width.digits {
				w.found = "the source has numbers of up to " + formatInt(int64(width.digits)) + " digits"
			}
		}
		return w
	case oidFloat8:
		if width.digits <= 10 {
			return native(i, encodeIntAsFloat)
		}
	}
	return wire{}
}

func bitWire(c *batch.Column, i *info) wire {
	switch i.oid {
	case oidBit, oidVarbit:
		w := native(i, encodeBit)
		n := i.limit()
		if i.oid == oidBit && n < 0 {
			n = 1
		}
		if n >= 0 && (i.oid == oidBit && n != int(c.Length) || int(c.Length) > n) {
			w.narrow, w.found = true, "the source has "+formatInt(int64(c.Length))+" bits"
		}
		return w
	case oidBytea:
		return native(i, encodeBytes)
	case oidBool:
		if c.Length == 1 {
			return native(i, encodeBool)
		}
	case oidInt2, oidInt4, oidInt8:
		_, hi, _ := intRange(i.oid)
		if c.Length > 0 && c.Length <= 64 {
			w := native(i, encodeInt)
			if uint64(1)<<(c.Length-1) > uint64(hi)>>1+1 {
				w.narrow, w.found = true, "the source has "+formatInt(int64(c.Length))+" bits"
			}
			return w
		}
	case oidNumeric:
		if c.Length > 0 && c.Length <= 64 {
			w := native(i, encodeNumber)
			w.narrow = true
			return w
		}
	}
	return wire{}
}

func decimalWire(c *batch.Column, i *info) wire {
	switch i.oid {
	case oidNumeric:
		w := native(i, encodeNumeric)
		if p, s, ok := i.digits(); ok {
			w.narrow = true
			if c.Precision > 0 && (int(c.Scale) > s || int(c.Precision)-int(c.Scale) > p-s) {
				w.found = "the source has " + typeText("decimal", int(c.Precision), int(c.Scale))
			}
			if c.Precision == 0 {
				w.found = "the source has any number of digits"
			}
		}
		return w
	case oidInt2, oidInt4, oidInt8:
		if c.Scale == 0 && c.Precision > 0 {
			w := native(i, encodeDecimalInt)
			w.narrow = true
			if limit := map[uint32]uint32{oidInt2: 4, oidInt4: 9, oidInt8: 18}[i.oid]; c.Precision > limit {
				w.found = "the source has numbers of up to " + formatInt(int64(c.Precision)) + " digits"
			}
			return w
		}
	}
	return wire{}
}

func timeWire(c *batch.Column, i *info) wire {
	at := map[batch.Type][]struct {
		oid uint32
		enc encode
	}{
		batch.Date:      {{oidDate, encodeDate}},
		batch.Time:      {{oidInterval, encodeTimeAsInterval}, {oidTime, encodeTime}},
		batch.DateTime:  {{oidTimestamp, encodeDateTime}},
		batch.Timestamp: {{oidTimestampTZ, encodeTimestamp}},
		batch.Interval:  {{oidInterval, encodeInterval}},
		batch.TimeTZ:    {{oidTimeTZ, encodeTimeTZ}},
	}[c.Type]
	for _, a := range at {
		if a.oid != i.oid {
			continue
		}
		w := native(i, a.enc)
		w.narrow = true
		switch n := i.limit(); {
		case i.oid == oidTime && typeOf(c) == "interval":
			w.found = "it holds 00:00:00 to 24:00:00 alone"
		case n >= 0 && int(c.Scale) > n:
			w.found = "the source has " + formatInt(int64(c.Scale)) + " fractional digits"
		case i.oid == oidInterval && i.mod >= 0:
			w.found = "it rounds"
		}
		return w
	}
	return wire{}
}

// otherWire is for types that travel as text: enums, arrays, types of extensions.
func otherWire(c *batch.Column, i *info) wire {
	switch c.Type {
	case batch.Array:
		if i.category == 'A' {
			return asText(i, encodeArray)
		}
	case batch.Vector:
		if i.category == 'A' {
			return asText(i, encodeVectorAsArray)
		}
		if strings.HasSuffix(i.cast, "vector") {
			return asText(i, encodeVector)
		}
	case batch.Native:
		if c.Flags&batch.TextValue != 0 {
			return asText(i, encodeText)
		}
	case batch.String, batch.Enum:
		if i.kind == 'e' || strings.HasSuffix(i.cast, "citext") || i.category == 'S' {
			return asText(i, encodeText)
		}
	}
	return wire{}
}
