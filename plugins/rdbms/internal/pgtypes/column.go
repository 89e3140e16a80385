package pgtypes

import (
	"github.com/datalink-go/datalink/sdk/batch"
)

// Session are the settings under which the server prints values as this package
// reads them. They go into the start-up message of each connection.
func Session() map[string]string {
	return map[string]string{
		"client_encoding":    "UTF8",
		"datestyle":          "ISO, MDY",
		"intervalstyle":      "iso_8601",
		"timezone":           "UTC",
		"extra_float_digits": "3",
		"bytea_output":       "hex",
		"lc_monetary":        "C",
		"xmloption":          "content",
		"search_path":        "pg_catalog",
	}
}

// Type is a row of pg_type.
type Type struct {
	OID      uint32
	Name     string // as format_type prints it without a modifier
	Kind     byte   // typtype
	Category byte
	Base     uint32 // of a domain
	BaseMod  int32
	Elem     uint32 // of an array
	Delim    byte
	Labels   []string // of an enum
}

// Types are the types of one database by oid.
type Types map[uint32]*Type

// kind says how the text of a value is read.
type kind uint8

const (
	kindText kind = iota
	kindBool
	kindInt
	kindUint
	kindFloat
	kindBytes
	kindUUID
	kindDate
	kindTime
	kindTimeTZ
	kindTimestamp
	kindTimestampTZ
	kindInterval
	kindBit
	kindArray
)

// Column reads the values of one column.
type Column struct {
	batch  batch.Column
	kind   kind
	native string
	bits   int
	elem   *Column
	delim  byte
	check  bool // the server does not hold text to an encoding
}

// Batch returns the column as a schema has it, without name, flags and default.
func (c *Column) Batch() batch.Column { return c.batch }

// Oids of the types that have a logical type of their own (pg_type.dat).
const (
	oidBool, oidBytea, oidChar, oidName, oidInt8, oidInt2, oidInt4, oidText, oidOID, oidXID = 16, 17, 18, 19, 20, 21, 23, 25, 26, 28

	oidJSON, oidCIDR, oidFloat4, oidFloat8, oidInet, oidBpchar, oidVarchar, oidDate, oidTime = 114, 650, 700, 701, 869, 1042, 1043, 1082, 1083

	oidTimestamp, oidTimestampTZ, oidInterval, oidTimeTZ, oidBit, oidNumeric, oidUUID, oidJSONB = 1114, 1184, 1186, 1266, 1560, 1700, 2950, 3802
)

// NewColumn returns the reader of a column of type oid with modifier mod. Raw says
// that the server's encoding is SQL_ASCII, so that text may be anything. Ok is
// false where types lacks a type that the column needs: missing names it.
func NewColumn(types Types, oid uint32, mod int32, raw bool) (c *Column, missing uint32) {
	t := types[oid]
	if t == nil {
		return nil, oid
	}
	if t.Kind == 'd' {
		if mod < 0 {
			mod = t.BaseMod
		}
		return NewColumn(types, t.Base, mod, raw)
	}
	c = &Column{check: raw, native: nativeName(t, mod)}
	b := &c.batch
	b.Native = c.native
	set := func(k kind, bt batch.Type) { c.kind, b.Type = k, bt }
	fraction := func() {
		b.Scale = 6
		if mod >= 0 {
			b.Scale = uint32(mod)
		}
	}
	switch oid {
	case oidBool:
		set(kindBool, batch.Bool)
	case oidInt2:
		set(kindInt, batch.Int16)
	case oidInt4:
		set(kindInt, batch.Int32)
	case oidInt8:
		set(kindInt, batch.Int64)
	case oidOID, oidXID:
		set(kindUint, batch.Uint32)
	case oidFloat4:
		set(kindFloat, batch.Float32)
	case oidFloat8:
		set(kindFloat, batch.Float64)
	case oidNumeric:
		set(kindText, batch.Decimal)
		if mod >= 4 {
			b.Precision, b.Scale = digits(mod)
		}
	case oidText, oidName, oidChar:
		set(kindText, batch.String)
	case oidVarchar, oidBpchar:
		set(kindText, batch.String)
		if mod >= 4 {
			b.Length = uint32(mod - 4)
		}
	case oidBytea:
		set(kindBytes, batch.Bytes)
	case oidUUID:
		set(kindUUID, batch.UUID)
	case oidJSON, oidJSONB:
		set(kindText, batch.JSON)
	case oidInet, oidCIDR:
		set(kindText, batch.Inet)
	case oidDate:
		set(kindDate, batch.Date)
	case oidTime:
		set(kindTime, batch.Time)
		fraction()
	case oidTimeTZ:
		set(kindTimeTZ, batch.TimeTZ)
		fraction()
	case oidTimestamp:
		set(kindTimestamp, batch.DateTime)
		fraction()
	case oidTimestampTZ:
		set(kindTimestampTZ, batch.Timestamp)
		fraction()
	case oidInterval:
		set(kindInterval, batch.Interval)
	case oidBit:
		set(kindBit, batch.Bit)
		c.bits = int(max(mod, 1))
		b.Length = uint32(c.bits)
	default:
		return c.other(types, t, mod, raw)
	}
	return c, 0
}

// digits reads the modifier of a numeric. A negative scale rounds left of the
// point, so that there are more digits than the precision; one above the precision
// has zeros behind the point, which the precision does not count.
func digits(mod int32) (precision, scale uint32) {
	p, s := (mod-4)>>16&0xFFFF, (mod-4)&0x7FF
	if s >= 1024 {
		return uint32(p + 2048 - s), 0
	}
	return uint32(max(p, s)), uint32(s)
}

// other decides about enums, arrays, and the types that travel as their text.
func (c *Column) other(types Types, t *Type, mod int32, raw bool) (*Column, uint32) {
	b := &c.batch
	switch {
	case t.Kind == 'e':
		b.Type, b.Values = batch.Enum, t.Labels
	case t.Category == 'A' && t.Elem != 0:
		elem, missing := NewColumn(types, t.Elem, mod, raw)
		if elem == nil {
			return nil, missing
		}
		if elem.batch.Type == batch.Array {
			// An array of a domain over an array: arrays do not nest.
			return c.text(), 0
		}
		c.kind, c.elem, c.delim = kindArray, elem, ','
		if e := types[t.Elem]; e.Delim != 0 {
			c.delim = e.Delim
		}
		b.Type, b.Elem = batch.Array, elem.batch.Type
		b.Flags |= elem.batch.Flags & batch.TextValue
		b.Length, b.Precision, b.Scale, b.Values = elem.batch.Length, elem.batch.Precision, elem.batch.Scale, elem.batch.Values
	case t.Name == "citext" || t.Name == "public.citext":
		b.Type, b.Collation = batch.String, "citext"
	default:
		return c.text(), 0
	}
	return c, 0
}

// text makes the column one of native text.
func (c *Column) text() *Column {
	c.kind, c.batch.Type = kindText, batch.Native
	c.batch.Flags |= batch.TextValue
	return c
}

// nativeName prints a type as format_type does with a modifier, for the types
// whose modifier matters to a reader.
func nativeName(t *Type, mod int32) string {
	if mod < 0 || t.Kind == 'e' {
		return t.Name
	}
	switch t.OID {
	case oidNumeric:
		if mod >= 4 {
			s := int((mod - 4) & 0x7FF)
			if s >= 1024 {
				s -= 2048
			}
			return t.Name + "(" + itoa(int((mod-4)>>16&0xFFFF)) + "," + itoa(s) + ")"
		}
	case oidVarchar, oidBpchar:
		return t.Name + "(" + itoa(int(mod-4)) + ")"
	case oidBit:
		return t.Name + "(" + itoa(int(mod)) + ")"
	}
	return t.Name
}
