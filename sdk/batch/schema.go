package batch

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// ColumnFlags says what a column is beside its type.
type ColumnFlags uint32

// Flags of a column.
const (
	Nullable  ColumnFlags = 1 << iota // may hold NULL
	Generated                         // computed by the source, stored
	Virtual                           // computed by the source, not stored
	Hidden                            // invisible: not part of SELECT *
	AutoIncrement
	TextValue // of Native columns and arrays of it: the bytes are text

	allFlags = TextValue<<1 - 1
)

// Column describes one column of a table at one position of the stream.
type Column struct {
	Name      string
	Type      Type
	Elem      Type   // element type of Array
	Native    string // type as the source writes it, e.g. "int unsigned", "varchar(40)"
	Length    uint32 // characters, bytes or bits; 0 = not stated
	Precision uint32 // decimal digits
	Scale     uint32 // fractional digits of Decimal, Time, DateTime, Timestamp, TimeTZ
	Charset   string // of the source, e.g. "latin1"; values are UTF-8 all the same
	Collation string // e.g. "utf8mb4_0900_ai_ci"; "" = binary comparison
	Flags     ColumnFlags
	SRID      uint32
	Values    []string // labels of Enum and Set
	Default   string   // default expression as the source writes it; "" = none
}

// Index names a unique index and the columns in it, by their place.
type Index struct {
	Name    string
	Columns []int
}

// ForeignKey names columns that refer to a row of another table.
type ForeignKey struct {
	Name       string
	Columns    []int
	RefSchema  string
	RefTable   string
	RefColumns []string
	OnDelete   string // CASCADE, SET NULL, …; "" = refuse
	OnUpdate   string
}

// Schema describes a table at one position of the stream. It does not change
// once it was given to a Builder or a Registry; another layout is another id.
type Schema struct {
	ID          uint32 // 1 and above, unique on a stream
	Version     uint64 // counts the layouts of the table, for messages and history
	Source      string // identity of the source: server uuid, cluster id, …
	Namespace   string // schema or database; "" where there is none
	Table       string
	Columns     []Column
	Key         []int // columns that identify a row: the primary key or a unique one without NULLs; empty = keyless
	PrimaryKey  bool  // Key is the primary key
	Uniques     []Index
	ForeignKeys []ForeignKey
	Positional  bool // column names are @1, @2, …: the layout is not known
}

// Name returns "namespace.table", or the table alone where there is no namespace.
func (s *Schema) Name() string {
	if s.Namespace == "" {
		return s.Table
	}
	return s.Namespace + "." + s.Table
}

// Column returns the place of the column with that name, or -1.
func (s *Schema) Column(name string) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
}

// Clone returns a copy that shares nothing with s.
func (s *Schema) Clone() *Schema {
	mem := math.MaxInt
	c, err := decodeSchema(AppendSchema(nil, s), &mem)
	if err != nil {
		panic("batch: a schema that was encoded does not decode: " + err.Error())
	}
	return c
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendBytes(dst, s []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendInts(dst []byte, v []int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	for _, i := range v {
		dst = binary.AppendUvarint(dst, uint64(i))
	}
	return dst
}

func appendStrings(dst []byte, v []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	for _, s := range v {
		dst = appendString(dst, s)
	}
	return dst
}

const (
	schemaPrimary    = 1
	schemaPositional = 2
)

// AppendSchema appends the definition of s as PROTOCOL.md, section "Schema",
// lays it out.
func AppendSchema(dst []byte, s *Schema) []byte {
	dst = binary.AppendUvarint(dst, uint64(s.ID))
	dst = binary.AppendUvarint(dst, s.Version)
	dst = appendString(dst, s.Source)
	dst = appendString(dst, s.Namespace)
	dst = appendString(dst, s.Table)
	var flags byte
	if s.PrimaryKey {
		flags |= schemaPrimary
	}
	if s.Positional {
		flags |= schemaPositional
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(len(s.Columns)))
	for i := range s.Columns {
		c := &s.Columns[i]
		dst = appendString(dst, c.Name)
		dst = append(dst, byte(c.Type), byte(c.Elem))
		dst = appendString(dst, c.Native)
		dst = binary.AppendUvarint(dst, uint64(c.Length))
		dst = binary.AppendUvarint(dst, uint64(c.Precision))
		dst = binary.AppendUvarint(dst, uint64(c.Scale))
		dst = appendString(dst, c.Charset)
		dst = appendString(dst, c.Collation)
		dst = binary.AppendUvarint(dst, uint64(c.Flags))
		dst = binary.AppendUvarint(dst, uint64(c.SRID))
		dst = appendStrings(dst, c.Values)
		dst = appendString(dst, c.Default)
	}
	dst = appendInts(dst, s.Key)
	dst = binary.AppendUvarint(dst, uint64(len(s.Uniques)))
	for _, u := range s.Uniques {
		dst = appendString(dst, u.Name)
		dst = appendInts(dst, u.Columns)
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.ForeignKeys)))
	for _, f := range s.ForeignKeys {
		dst = appendString(dst, f.Name)
		dst = appendInts(dst, f.Columns)
		dst = appendString(dst, f.RefSchema)
		dst = appendString(dst, f.RefTable)
		dst = appendStrings(dst, f.RefColumns)
		dst = appendString(dst, f.OnDelete)
		dst = appendString(dst, f.OnUpdate)
	}
	return dst
}

// DecodeSchema reads a definition written by AppendSchema. The result shares
// nothing with data.
func DecodeSchema(data []byte) (*Schema, error) {
	mem := DefaultBlock
	return decodeSchema(data, &mem)
}

// decodeSchema takes what it allocates for lists from mem.
func decodeSchema(data []byte, mem *int) (*Schema, error) {
	c := newCursor("schema", data, *mem)
	defer func() { *mem = c.mem }()
	s := &Schema{
		ID: c.uint32("id"), Version: c.uvarint("version"), Source: c.string("source"),
		Namespace: c.string("namespace"), Table: c.string("table"),
	}
	flags := c.byte("flags")
	s.PrimaryKey = flags&schemaPrimary != 0
	s.Positional = flags&schemaPositional != 0
	if flags&^(schemaPrimary|schemaPositional) != 0 {
		c.fail("flags", "unknown bits")
	}
	n := c.count("columns", 13, unsafe.Sizeof(Column{}))
	if n > 0 {
		s.Columns = make([]Column, n)
	}
	for i := range s.Columns {
		s.Columns[i] = c.column()
	}
	s.Key = c.places("key", n)
	if m := c.count("uniques", 2, unsafe.Sizeof(Index{})); m > 0 {
		s.Uniques = make([]Index, m)
		for i := range s.Uniques {
			s.Uniques[i] = Index{Name: c.string("unique name"), Columns: c.places("unique columns", n)}
		}
	}
	if m := c.count("foreign keys", 7, unsafe.Sizeof(ForeignKey{})); m > 0 {
		s.ForeignKeys = make([]ForeignKey, m)
		for i := range s.ForeignKeys {
			s.ForeignKeys[i] = ForeignKey{
				Name: c.string("foreign key name"), Columns: c.places("foreign key columns", n), RefSchema: c.string("referenced schema"),
				RefTable: c.string("referenced table"), RefColumns: c.strings("referenced columns"),
				OnDelete: c.string("on delete"), OnUpdate: c.string("on update"),
			}
		}
	}
	c.end()
	if c.err == nil && s.ID == 0 {
		c.fail("id", "0 is not a schema id")
	}
	if c.err != nil {
		return nil, c.err
	}
	return s, nil
}

func (c *cursor) column() Column {
	col := Column{Name: c.string("column name"), Type: Type(c.byte("column type")), Elem: Type(c.byte("element type"))}
	if c.err == nil && !col.Type.Valid() {
		c.fail("column type", "unknown type "+col.Type.String()+" of column "+col.Name)
	}
	if c.err == nil && ((col.Type == Array) != (col.Elem != TypeInvalid) || col.Elem != TypeInvalid && !col.Elem.elemental()) {
		c.fail("element type", "column "+col.Name+" of type "+col.Type.String()+" has element type "+col.Elem.String())
	}
	col.Native = c.string("native type")
	col.Length = c.uint32("length")
	col.Precision = c.uint32("precision")
	col.Scale = c.uint32("scale")
	col.Charset = c.string("charset")
	col.Collation = c.string("collation")
	col.Flags = ColumnFlags(c.uint32("column flags"))
	if c.err == nil && col.Flags&^allFlags != 0 {
		c.fail("column flags", fmt.Sprintf("unknown bits %#x", uint32(col.Flags&^allFlags)))
	}
	col.SRID = c.uint32("srid")
	col.Values = c.strings("labels")
	col.Default = c.string("default")
	return col
}
