package mysql

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk/batch"
)

// span is the range of an integer type; hi is unsigned.
type span struct {
	lo int64
	hi uint64
}

func (s span) holds(o span) bool { return s.lo <= o.lo && s.hi >= o.hi }

var spans = map[string][2]span{ // signed, unsigned
	"tinyint":   {{math.MinInt8, math.MaxInt8}, {0, math.MaxUint8}},
	"smallint":  {{math.MinInt16, math.MaxInt16}, {0, math.MaxUint16}},
	"mediumint": {{-1 << 23, 1<<23 - 1}, {0, 1<<24 - 1}},
	"int":       {{math.MinInt32, math.MaxInt32}, {0, math.MaxUint32}},
	"bigint":    {{math.MinInt64, math.MaxInt64}, {0, math.MaxUint64}},
}

func (t declared) span() (span, bool) {
	s, ok := spans[t.base]
	if t.unsigned {
		return s[1], ok
	}
	return s[0], ok
}

// spanOf is the range of the source's values.
func spanOf(c *batch.Column) (span, bool) {
	medium := strings.HasPrefix(strings.ToLower(c.Native), "mediumint")
	switch c.Type {
	case batch.Bool:
		return span{0, 1}, true
	case batch.Int8:
		return spans["tinyint"][0], true
	case batch.Int16:
		return spans["smallint"][0], true
	case batch.Int32:
		if medium {
			return spans["mediumint"][0], true
		}
		return spans["int"][0], true
	case batch.Int64:
		return spans["bigint"][0], true
	case batch.Uint8:
		return spans["tinyint"][1], true
	case batch.Uint16, batch.Year:
		return spans["smallint"][1], true
	case batch.Uint32:
		if medium {
			return spans["mediumint"][1], true
		}
		return spans["int"][1], true
	case batch.Uint64:
		return spans["bigint"][1], true
	}
	return span{}, false
}

// textRoom is the count of bytes that a text or blob type holds.
var textRoom = map[string]uint64{
	"tinytext": 255, "text": 65535, "mediumtext": 1<<24 - 1, "longtext": 1<<32 - 1,
	"tinyblob": 255, "blob": 65535, "mediumblob": 1<<24 - 1, "longblob": 1<<32 - 1,
}

const (
	wrong  = "not a type for it"
	narrow = "too narrow for some values"
)

// Fits says what is wrong with a column of the target for the values of c.
func (d *dialect) Fits(c *batch.Column, have *target.Column, key bool) (found string, isNarrow bool) {
	why := d.fits(c, have, parseType(have.Type))
	switch why {
	case "":
		return "", false
	case narrow:
		if key && strings.HasPrefix(strings.ToLower(d.Type(c, key)), strings.ToLower(have.Type)) {
			// No index holds longer ones: the writer itself creates it so, and looks at
			// each value.
			return "", true
		}
		return fmt.Sprintf("%s of %s, expected %s", narrow, typeText(c), d.Type(c, key)), true
	}
	return fmt.Sprintf("%s, which is %s; expected %s", why, typeText(c), d.Type(c, key)), false
}

func typeText(c *batch.Column) string {
	if c.Native != "" {
		return c.Native
	}
	return c.Type.String()
}

func (d *dialect) fits(c *batch.Column, have *target.Column, t declared) string {
	ok := func(yes bool) string {
		if yes {
			return ""
		}
		return narrow
	}
	if c.Type == batch.Year && t.base == "year" {
		return ""
	}
	if want, is := spanOf(c); is {
		if got, is := t.span(); is {
			return ok(got.holds(want))
		}
		if t.base == "decimal" {
			return ok(t.n-max(t.scale, 0) >= len(fmt.Sprint(want.hi)) && (!t.unsigned || want.lo >= 0))
		}
		return wrong
	}
	isText := slices.Contains([]string{"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}, t.base)
	isBlob := slices.Contains([]string{"varbinary", "tinyblob", "blob", "mediumblob", "longblob"}, t.base)
	switch c.Type {
	case batch.Float32:
		if t.base == "float" || t.base == "double" {
			return ok(t.n < 0 && !t.unsigned)
		}
	case batch.Float64:
		if t.base == "double" {
			return ok(t.n < 0 && !t.unsigned)
		}
	case batch.Decimal:
		if t.base == "decimal" {
			s := max(t.scale, 0)
			return ok(c.Precision > 0 && s >= int(c.Scale) && t.n-s >= int(c.Precision)-int(c.Scale) && !t.unsigned)
		}
	case batch.Bit:
		switch {
		case t.base == "bit":
			return ok(c.Length >= 1 && t.n >= int(c.Length))
		case isBlob && (c.Length == 0 || c.Length > 64):
			return ok(room(t) >= uint64(c.Length+7)/8)
		}
		if got, is := t.span(); is && c.Length >= 1 && c.Length <= 64 {
			return ok(got.hi >= math.MaxUint64>>(64-c.Length))
		}
	case batch.Date:
		if t.base == "date" {
			return ""
		}
	case batch.Time:
		if t.base == "time" {
			return ok(t.n >= int(c.Scale) || c.Scale == 0)
		}
	case batch.DateTime:
		if t.base == "datetime" {
			return ok(t.n >= int(c.Scale) || c.Scale == 0)
		}
	case batch.Timestamp:
		switch t.base {
		case "datetime":
			return ok(t.n >= int(c.Scale) || c.Scale == 0)
		case "timestamp":
			return ok((t.n >= int(c.Scale) || c.Scale == 0) && isTimestamp(strings.ToLower(c.Native)))
		}
	case batch.JSON:
		switch {
		case t.base == "json" || isText && t.base != "char" && have.Charset == "utf8mb4":
			return ok(t.base == "json" || room(t) >= 1<<32-1)
		}
	case batch.Enum, batch.Set:
		switch {
		case t.base == "enum" && c.Type == batch.Enum, t.base == "set" && c.Type == batch.Set:
			return ok(!slices.ContainsFunc(c.Values, func(v string) bool { return !slices.Contains(t.labels, v) }))
		case isText:
			n := 0
			for _, v := range c.Values {
				if c.Type == batch.Set {
					n += len(v) + 1
				} else {
					n = max(n, len(v))
				}
			}
			return ok(d.holdsText(have, t, uint64(n), uint64(n), c))
		}
	case batch.String:
		switch {
		case t.base == "char" && !strings.HasPrefix(strings.ToLower(c.Native), "char"):
			return "cuts trailing blanks off"
		case isText:
			chars := uint64(c.Length)
			bytes := 4 * chars
			if n, known := textRoom[strings.ToLower(c.Native)]; known {
				chars, bytes = n, n
			} else if chars == 0 {
				chars, bytes = math.MaxUint32, math.MaxUint32
			}
			return ok(d.holdsText(have, t, chars, bytes, c))
		case t.base == "enum", t.base == "set":
			return narrow
		}
	case batch.Bytes:
		want := uint64(c.Length)
		if n, known := textRoom[strings.ToLower(c.Native)]; known {
			want = n
		} else if want == 0 {
			want = math.MaxUint32
		}
		switch {
		case t.base == "binary":
			if !strings.HasPrefix(strings.ToLower(c.Native), "binary") || t.n != int(c.Length) {
				return "fills values up with zero bytes"
			}
			return ""
		case isBlob:
			return ok(room(t) >= want)
		}
	case batch.Geometry:
		switch t.base {
		case "geometry", "longblob":
			return ""
		case "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection":
			return ok(strings.Contains(strings.ToLower(c.Native), t.base))
		}
	case batch.UUID:
		if t.base == "uuid" || t.base == "char" && t.n == 36 || t.base == "varchar" && t.n >= 36 || t.base == "binary" && t.n == 16 {
			return ""
		}
	case batch.Vector:
		if t.base == "vector" {
			return ok(c.Length > 0 && t.n >= int(c.Length))
		}
		if isBlob {
			return ok(room(t) >= 4*uint64(c.Length) && c.Length > 0 || room(t) >= 65535)
		}
	case batch.Interval, batch.TimeTZ, batch.Inet:
		if isText && t.base != "char" {
			return ok(room(t) >= 50)
		}
	default:
		if asText(c) && isText && t.base != "char" || !asText(c) && isBlob {
			return ok(room(t) >= 1<<24-1)
		}
	}
	return wrong
}

// room is the count of characters of a char type and of bytes of all others.
func room(t declared) uint64 {
	if n, ok := textRoom[t.base]; ok {
		return n
	}
	return uint64(max(t.n, 0))
}

// holdsText reports whether a text column holds all texts of that many characters
// and bytes.
func (d *dialect) holdsText(have *target.Column, t declared, chars, bytes uint64, c *batch.Column) bool {
	if have.Charset != "utf8mb4" && !strings.EqualFold(have.Charset, c.Charset) {
		return false
	}
	if _, family := textRoom[t.base]; family {
		return room(t) >= bytes
	}
	return room(t) >= chars
}

// asText reports whether values of a type without a counterpart are text.
func asText(c *batch.Column) bool {
	switch c.Type {
	case batch.Map, batch.Native:
		return c.Flags&batch.TextValue != 0
	case batch.Array, batch.Vector, batch.Geometry, batch.Bytes, batch.Bit:
		return false
	}
	return true
}
