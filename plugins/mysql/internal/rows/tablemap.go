package rows

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// ErrCorrupt is wrapped by errors about events whose bytes do not fit.
var ErrCorrupt = errors.New("corrupt row event")

// Column types of the log (include/field_types.h of MySQL, and MariaDB's own).
const (
	typeDecimal      = 0
	typeTiny         = 1
	typeShort        = 2
	typeLong         = 3
	typeFloat        = 4
	typeDouble       = 5
	typeNull         = 6
	typeTimestamp    = 7
	typeLongLong     = 8
	typeInt24        = 9
	typeDate         = 10
	typeTime         = 11
	typeDateTime     = 12
	typeYear         = 13
	typeNewDate      = 14
	typeVarchar      = 15
	typeBit          = 16
	typeTimestamp2   = 17
	typeDateTime2    = 18
	typeTime2        = 19
	typeTypedArray   = 20
	typeBlobCompr    = 140
	typeVarcharCompr = 141
	typeVector       = 242
	typeJSON         = 245
	typeNewDecimal   = 246
	typeEnum         = 247
	typeSet          = 248
	typeTinyBlob     = 249
	typeMediumBlob   = 250
	typeLongBlob     = 251
	typeBlob         = 252
	typeVarString    = 253
	typeString       = 254
	typeGeometry     = 255
)

// ColumnMap is what a table map says about one column.
type ColumnMap struct {
	Type      uint8 // real type: ENUM and SET are not STRING here
	Meta      uint16
	Nullable  bool
	Signed    int8 // 1 signed, -1 unsigned, 0 not stated
	Collation uint32
	Name      string   // "" where not stated
	Labels    []string // of ENUM and SET, in the bytes of the collation's character set
	HasLabels bool
	Geometry  uint8 // 0 = any
	Hidden    bool  // declared invisible
	Dims      uint32
}

// TableMap is a decoded TABLE_MAP event.
type TableMap struct {
	ID         uint64
	Flags      uint16
	Database   string
	Table      string
	Columns    []ColumnMap
	HasNames   bool
	HasKey     bool // primary key metadata is there: Key may still be empty
	Key        []int
	KeyPrefix  []int // prefix lengths; nil where the key has none
	HasVisible bool
}

// TableID reads the table id at the head of a table map or row event.
func TableID(t binlog.Type, f *binlog.Format, body []byte) (uint64, int, error) {
	n := f.TableIDSize(t)
	if len(body) < n+2 {
		return 0, 0, fmt.Errorf("%w: %s event of %d bytes", ErrCorrupt, t, len(body))
	}
	var w [8]byte
	copy(w[:], body[:n])
	return binary.LittleEndian.Uint64(w[:]), n, nil
}

// ParseTableMap decodes the body of a TABLE_MAP event. The result shares nothing
// with body.
func ParseTableMap(f *binlog.Format, body []byte) (*TableMap, error) {
	id, n, err := TableID(binlog.TableMap, f, body)
	if err != nil {
		return nil, err
	}
	r := reader{b: body[n:]}
	tm := &TableMap{ID: id, Flags: r.uint16()}
	tm.Database = string(r.bytes(int(r.byte())))
	r.byte() // a NUL
	tm.Table = string(r.bytes(int(r.byte())))
	r.byte()
	cols := r.lenenc()
	if cols > uint64(len(r.b)) {
		r.bad = true
		cols = 0
	}
	types := r.bytes(int(cols))
	meta := reader{b: r.bytes(int(r.lenenc()))}
	nulls := r.bytes((int(cols) + 7) / 8)
	if r.bad {
		return nil, fmt.Errorf("%w: TABLE_MAP event of %s.%s is cut off", ErrCorrupt, tm.Database, tm.Table)
	}
	tm.Columns = make([]ColumnMap, cols)
	for i := range tm.Columns {
		c := &tm.Columns[i]
		c.Type = types[i]
		c.Nullable = nulls[i>>3]&(1<<(i&7)) != 0
		if err := c.meta(&meta); err != nil {
			return nil, fmt.Errorf("%w: TABLE_MAP event of %s.%s, column %d: %w", ErrCorrupt, tm.Database, tm.Table, i+1, err)
		}
	}
	if meta.bad || len(meta.b) > 0 {
		return nil, fmt.Errorf("%w: TABLE_MAP event of %s.%s: metadata does not fit the %d columns", ErrCorrupt, tm.Database, tm.Table, cols)
	}
	if err := tm.optional(r.b, f.MariaDB); err != nil {
		return nil, fmt.Errorf("%w: TABLE_MAP event of %s.%s: %w", ErrCorrupt, tm.Database, tm.Table, err)
	}
	return tm, nil
}

func (c *ColumnMap) meta(m *reader) error {
	switch c.Type {
	case typeFloat, typeDouble, typeBlob, typeGeometry, typeJSON, typeVector, typeTimestamp2, typeDateTime2, typeTime2,
		typeTinyBlob, typeMediumBlob, typeLongBlob, typeBlobCompr:
		c.Meta = uint16(m.byte())
	case typeVarchar, typeVarString, typeBit, typeVarcharCompr:
		c.Meta = m.uint16()
	case typeNewDecimal:
		c.Meta = uint16(m.byte())<<8 | uint16(m.byte())
	case typeString, typeEnum, typeSet:
		a, b := m.byte(), m.byte()
		switch {
		case a == typeEnum || a == typeSet:
			c.Type, c.Meta = a, uint16(b)
		case a&0x30 != 0x30:
			// Lengths above 255 have two bits in the type, inverted.
			c.Type, c.Meta = a|0x30, uint16(b)|uint16(a&0x30^0x30)<<4
		default:
			c.Type, c.Meta = a, uint16(b)
		}
		if c.Type != typeString && c.Type != typeEnum && c.Type != typeSet && c.Type != typeVarString {
			return fmt.Errorf("string of real type %d", c.Type)
		}
	case typeTypedArray:
		return errors.New("type TYPED_ARRAY, which no table column has")
	case typeDecimal, typeTiny, typeShort, typeLong, typeNull, typeTimestamp, typeLongLong, typeInt24, typeDate,
		typeTime, typeDateTime, typeYear, typeNewDate:
	default:
		return fmt.Errorf("type %d is not known", c.Type)
	}
	return nil
}

func (c *ColumnMap) numeric() bool {
	switch c.Type {
	case typeTiny, typeShort, typeInt24, typeLong, typeLongLong, typeFloat, typeDouble, typeNewDecimal, typeDecimal, typeYear:
		return true
	}
	return false
}

// character reports whether the column counts among those that have a place in
// the list of character sets.
func (c *ColumnMap) character(maria bool) bool {
	switch c.Type {
	case typeString, typeVarString, typeVarchar, typeBlob, typeTinyBlob, typeMediumBlob, typeLongBlob:
		return true
	case typeVarcharCompr, typeBlobCompr, typeGeometry:
		return maria
	case typeVector: // under the character set binary
		return !maria
	}
	return false
}

// optional reads the optional metadata: MySQL from 8.0.1, MariaDB from 10.5.
func (tm *TableMap) optional(b []byte, maria bool) error {
	all := reader{b: b}
	for len(all.b) > 0 {
		field := all.byte()
		v := reader{b: all.bytes(int(all.lenenc()))}
		if all.bad {
			return fmt.Errorf("optional metadata field %d is cut off", field)
		}
		switch field {
		case 1: // signedness, a bit for each numeric column, the highest first
			tm.bits(v.b, func(c *ColumnMap) bool { return c.numeric() }, func(c *ColumnMap, on bool) {
				c.Signed = 1
				if on {
					c.Signed = -1
				}
			})
		case 2, 10: // default character set and exceptions
			is := tm.charKind(field == 10, maria)
			def := v.lenenc()
			n := 0
			for i := range tm.Columns {
				if is(&tm.Columns[i]) {
					tm.Columns[i].Collation = uint32(def)
					n++
				}
			}
			for len(v.b) > 0 && !v.bad {
				at, cs := v.lenenc(), v.lenenc()
				n := uint64(0)
				for i := range tm.Columns {
					if is(&tm.Columns[i]) {
						if n == at {
							tm.Columns[i].Collation = uint32(cs)
						}
						n++
					}
				}
			}
		case 3, 11: // a character set for each
			is := tm.charKind(field == 11, maria)
			for i := range tm.Columns {
				if is(&tm.Columns[i]) {
					tm.Columns[i].Collation = uint32(v.lenenc())
				}
			}
			if len(v.b) > 0 {
				return fmt.Errorf("optional metadata field %d has character sets for more columns than can have one", field)
			}
		case 4:
			for i := range tm.Columns {
				tm.Columns[i].Name = string(v.bytes(int(v.lenenc())))
			}
			tm.HasNames = true
		case 5, 6:
			want := uint8(typeSet)
			if field == 6 {
				want = typeEnum
			}
			for i := range tm.Columns {
				c := &tm.Columns[i]
				if c.Type != want {
					continue
				}
				n := v.lenenc()
				c.HasLabels = true
				for ; n > 0 && !v.bad; n-- {
					c.Labels = append(c.Labels, string(v.bytes(int(v.lenenc()))))
				}
			}
		case 7:
			for i := range tm.Columns {
				if tm.Columns[i].Type == typeGeometry {
					tm.Columns[i].Geometry = uint8(v.lenenc())
				}
			}
		case 8, 9:
			tm.HasKey = true
			for len(v.b) > 0 && !v.bad {
				at := v.lenenc()
				if at >= uint64(len(tm.Columns)) {
					return fmt.Errorf("primary key column %d of %d", at+1, len(tm.Columns))
				}
				tm.Key = append(tm.Key, int(at))
				if field == 9 {
					tm.KeyPrefix = append(tm.KeyPrefix, int(v.lenenc()))
				}
			}
		case 12:
			tm.HasVisible = true
			tm.bits(v.b, func(*ColumnMap) bool { return true }, func(c *ColumnMap, on bool) { c.Hidden = !on })
		case 13:
			for i := range tm.Columns {
				if tm.Columns[i].Type == typeVector {
					tm.Columns[i].Dims = uint32(v.lenenc())
				}
			}
		default:
			// Later servers may add fields; they are optional by definition.
			v.b = nil
		}
		if v.bad {
			return fmt.Errorf("optional metadata field %d is cut off", field)
		}
	}
	return nil
}

func (tm *TableMap) charKind(labels, maria bool) func(*ColumnMap) bool {
	if labels {
		return func(c *ColumnMap) bool { return c.Type == typeEnum || c.Type == typeSet }
	}
	return func(c *ColumnMap) bool { return c.character(maria) }
}

func (tm *TableMap) bits(b []byte, is func(*ColumnMap) bool, set func(*ColumnMap, bool)) {
	n := 0
	for i := range tm.Columns {
		if c := &tm.Columns[i]; is(c) {
			if n>>3 < len(b) {
				set(c, b[n>>3]&(0x80>>(n&7)) != 0)
			}
			n++
		}
	}
}

// reader takes bytes from the front; once they run out it is bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uint16() uint16 {
	if v := r.bytes(2); v != nil {
		return binary.LittleEndian.Uint16(v)
	}
	return 0
}

func (r *reader) lenenc() uint64 {
	v, n := binlog.LenEnc(r.b)
	if n == 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}
