package batch

import (
	"encoding/binary"
	"strings"
)

// DDLKind is what a typed schema change does.
type DDLKind uint8

// The kinds of schema change. DDLOther is a statement that changes tables in a
// way that is not typed; its text is all there is.
const (
	DDLInvalid DDLKind = iota
	DDLCreateTable
	DDLDropTable
	DDLRenameTable
	DDLAddColumn
	DDLDropColumn
	DDLRenameColumn
	DDLChangeColumn
	DDLAddIndex
	DDLDropIndex
	DDLOther
)

// Change is the body of a DDL event.
type Change struct {
	Kind      DDLKind
	Namespace string // of the table it touches
	Table     string
	OldName   string  // table or column before a rename; see OldTable
	Column    *Column // new layout of the column of Add, Rename and ChangeColumn; its name for Drop
	After     string  // column it stands after; "" = last; "FIRST"-placement is After == "\x00"
	Index     *Index
	Schema    *Schema // layout of the whole table after the change, where it is known
	Statement string  // as the source wrote it
	Default   string  // schema that unqualified names in Statement refer to
}

// OldTable returns the namespace and the name that a renamed table had. OldName
// holds the name alone where the namespace stays, else both with a NUL between.
func (c *Change) OldTable() (namespace, table string) {
	if ns, t, moved := strings.Cut(c.OldName, "\x00"); moved {
		return ns, t
	}
	return c.Namespace, c.OldName
}

// SetOldTable is the inverse of OldTable.
func (c *Change) SetOldTable(namespace, table string) {
	c.OldName = table
	if namespace != c.Namespace {
		c.OldName = namespace + "\x00" + table
	}
}

// KeyRange is the body of a Range event: the rows of a snapshot chunk that precede
// it in its transaction, all with lo < key <= hi in the source's order, and the
// rows with the keys of Kept are exactly those of the source between the two
// positions. Lo or Hi are empty at the table's ends; both are key bytes.
//
// The chunk with an empty Lo comes first and the one with Last comes last. Keys and
// Kept may hold keys outside of the range and of rows that are gone.
type KeyRange struct {
	Lo, Hi    []byte
	Low, High []byte   // positions, the reader's own bytes
	Last      bool     // the table's last chunk
	Keys      [][]byte // of the chunk's rows, for a receiver that saw but a part of them
	Kept      [][]byte // of rows that the stream changed meanwhile: they are not among the chunk's rows
}

// StateItem is the body of a State event: one keyed, versioned item of reader
// state (schema history, snapshot progress). It is stored in the same step as
// the position that follows it.
type StateItem struct {
	Key     string
	Version uint64
	Value   []byte
	Deleted bool
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendChange(dst []byte, c *Change) []byte {
	dst = append(dst, byte(c.Kind))
	for _, s := range []string{c.Namespace, c.Table, c.OldName, c.After, c.Statement, c.Default} {
		dst = appendString(dst, s)
	}
	// Column and index travel inside a schema of their own, so that they have one layout only.
	var part Schema
	part.ID = 1
	if c.Column != nil {
		part.Columns = []Column{*c.Column}
	}
	if c.Index != nil {
		part.Columns = padColumns(part.Columns, c.Index)
		part.Uniques = []Index{*c.Index}
	}
	dst = appendBool(dst, c.Column != nil)
	dst = appendBytes(dst, AppendSchema(nil, &part))
	if c.Schema == nil {
		return append(dst, 0)
	}
	return appendBytes(dst, AppendSchema(nil, c.Schema))
}

func padColumns(cols []Column, ix *Index) []Column {
	for _, p := range ix.Columns {
		for len(cols) <= p {
			cols = append(cols, Column{Type: Native})
		}
	}
	return cols
}

func decodeChange(data []byte) (*Change, error) {
	mem := DefaultBlock
	c := newCursor("schema change", data, mem)
	ch := &Change{Kind: DDLKind(c.byte("kind"))}
	if c.err == nil && (ch.Kind == DDLInvalid || ch.Kind > DDLOther) {
		c.fail("kind", "unknown")
	}
	ch.Namespace = c.string("namespace")
	ch.Table = c.string("table")
	ch.OldName = c.string("old name")
	ch.After = c.string("after")
	ch.Statement = c.string("statement")
	ch.Default = c.string("default schema")
	hasColumn := c.bool("column")
	part := c.bytes("part")
	whole := c.bytes("schema")
	c.end()
	if c.err != nil {
		return nil, c.err
	}
	p, err := decodeSchema(part, &mem)
	if err != nil {
		return nil, err
	}
	if hasColumn {
		if len(p.Columns) == 0 {
			c.fail("column", "announced, none there")
			return nil, c.err
		}
		ch.Column = &p.Columns[0]
	}
	if len(p.Uniques) > 0 {
		ch.Index = &p.Uniques[0]
	}
	if len(whole) > 0 {
		if ch.Schema, err = decodeSchema(whole, &mem); err != nil {
			return nil, err
		}
	}
	return ch, nil
}

func appendRange(dst []byte, r *KeyRange) []byte {
	for _, b := range [][]byte{r.Lo, r.Hi, r.Low, r.High} {
		dst = appendBytes(dst, b)
	}
	dst = appendBool(dst, r.Last)
	for _, list := range [][][]byte{r.Keys, r.Kept} {
		dst = binary.AppendUvarint(dst, uint64(len(list)))
		for _, k := range list {
			dst = appendBytes(dst, k)
		}
	}
	return dst
}

func decodeRange(data []byte) (*KeyRange, error) {
	c := newCursor("range", data, DefaultBlock)
	r := &KeyRange{Lo: c.bytes("lo"), Hi: c.bytes("hi"), Low: c.bytes("low"), High: c.bytes("high"), Last: c.bool("last")}
	r.Keys, r.Kept = c.list("keys"), c.list("kept keys")
	c.end()
	if c.err != nil {
		return nil, c.err
	}
	return r, nil
}

func appendState(dst []byte, s *StateItem) []byte {
	dst = appendString(dst, s.Key)
	dst = binary.AppendUvarint(dst, s.Version)
	dst = appendBytes(dst, s.Value)
	return appendBool(dst, s.Deleted)
}

func decodeState(data []byte) (*StateItem, error) {
	c := newCursor("state item", data, 0)
	s := &StateItem{Key: c.string("key"), Version: c.uvarint("version"), Value: c.bytes("value"), Deleted: c.bool("deleted")}
	c.end()
	if c.err != nil {
		return nil, c.err
	}
	return s, nil
}
