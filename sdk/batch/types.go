package batch

import (
	"fmt"
	"math"
)

// Type is the logical type of a column. The byte layout of each is in
// sdk/PROTOCOL.md, section "Values".
type Type uint8

// The logical types. "Fixed" ones have a width of their own, all others are
// preceded by their length.
const (
	TypeInvalid Type = iota
	Bool             // 1 byte, 0 or 1
	Int8             // two's complement, little endian, as are all below
	Int16            //
	Int32            //
	Int64            //
	Uint8            //
	Uint16           //
	Uint32           //
	Uint64           //
	Float32          // IEEE 754
	Float64          // IEEE 754
	Decimal          // exact text: -?digits[.digits], NaN, Infinity, -Infinity
	String           // UTF-8
	Bytes            // raw bytes
	Bit              // big endian, ceil(Length/8) bytes
	Date             // packed civil date, see Civil
	Time             // signed microseconds, ±838:59:59.999999 and wider
	DateTime         // packed civil date and time without zone, see Civil
	Timestamp        // microseconds since 1970-01-01 UTC; see ZeroTimestamp
	Year             // uint16, 0 is the year 0000
	JSON             // exact text as the source prints it
	Enum             // label; "" is the invalid value of MySQL
	Set              // labels joined by commas
	Geometry         // uint32 SRID, then WKB
	UUID             // 16 bytes
	Array            // dimensions, NULL bitmap, elements; see AppendArray
	Map              // text to text or NULL; see AppendMap
	Vector           // float32 each
	Interval         // int32 months, int32 days, int64 microseconds
	TimeTZ           // int64 microseconds, int32 offset in seconds east of UTC
	Inet             // text
	Native           // what is not listed: exact text or bytes; Column.Native names it
	typeEnd
)

var typeNames = [...]string{
	"invalid", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
	"float32", "float64", "decimal", "string", "bytes", "bit", "date", "time", "datetime", "timestamp",
	"year", "json", "enum", "set", "geometry", "uuid", "array", "map", "vector", "interval", "timetz", "inet", "native",
}

// String returns the name used in messages and in sdk/PROTOCOL.md.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// Valid reports whether t is a type of this version of the format.
func (t Type) Valid() bool { return t > TypeInvalid && t < typeEnd }

// widths holds the encoded width of fixed types; 0 means length-prefixed.
var widths = [typeEnd]uint8{
	Bool: 1, Int8: 1, Int16: 2, Int32: 4, Int64: 8, Uint8: 1, Uint16: 2, Uint32: 4, Uint64: 8,
	Float32: 4, Float64: 8, Date: 4, Time: 8, DateTime: 8, Timestamp: 8, Year: 2, UUID: 16, Interval: 16, TimeTZ: 12,
}

// Width returns the encoded width in bytes of a fixed type and 0 for types
// that are preceded by their length.
func (t Type) Width() int {
	if t < typeEnd {
		return int(widths[t])
	}
	return 0
}

// elemental reports whether arrays of t exist: they do not nest, an array has
// dimensions instead.
func (t Type) elemental() bool { return t.Valid() && t != Array && t != Map }

// ranges holds what PutInt takes: nothing for types that are no integers.
var ranges = func() (r [typeEnd]struct{ lo, hi int64 }) {
	for t := range r {
		r[t].lo, r[t].hi = 1, 0
	}
	for t, lohi := range map[Type][2]int64{
		Bool: {0, 1}, Int8: {math.MinInt8, math.MaxInt8}, Int16: {math.MinInt16, math.MaxInt16}, Int32: {math.MinInt32, math.MaxInt32},
		Int64: {math.MinInt64, math.MaxInt64}, Uint8: {0, math.MaxUint8}, Uint16: {0, math.MaxUint16}, Uint32: {0, math.MaxUint32},
		Uint64: {0, math.MaxInt64}, Date: {math.MinInt32, math.MaxInt32}, Time: {math.MinInt64, math.MaxInt64},
		DateTime: {math.MinInt64, math.MaxInt64}, Timestamp: {math.MinInt64, math.MaxInt64}, Year: {0, math.MaxUint16},
	} {
		r[t].lo, r[t].hi = lohi[0], lohi[1]
	}
	return r
}()

// Kind is the kind of an event.
type Kind uint8

// The kinds of event. Read is a row of a snapshot: it says what the row is, not
// that it changed.
const (
	KindInvalid Kind = iota
	Insert
	Update
	Delete
	Read
	Truncate
	DDL
	Range
	Heartbeat
	Origin
	State
	kindEnd
)

var kindNames = [...]string{"invalid", "insert", "update", "delete", "read", "truncate", "ddl", "range", "heartbeat", "origin", "state"}

// String returns the name used in messages and in sdk/PROTOCOL.md.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Valid reports whether k is a kind of this version of the format.
func (k Kind) Valid() bool { return k > KindInvalid && k < kindEnd }

// needsSchema reports whether events of this kind concern one table.
func (k Kind) needsSchema() bool { return k.IsRow() || k == Truncate || k == Range }

// hasImages reports whether a row of this kind has the images it must have and
// no others: Insert and Read the new one, Delete the old one, Update the new one
// and perhaps the old one.
func hasImages(k Kind, flags byte) bool {
	switch flags & (eventBefore | eventAfter) {
	case eventAfter:
		return k != Delete
	case eventBefore:
		return k == Delete
	case eventBefore | eventAfter:
		return k == Update
	}
	return false
}

// IsRow reports whether events of this kind carry row images.
func (k Kind) IsRow() bool { return k >= Insert && k <= Read }
