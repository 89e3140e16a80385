package binlogtest

import (
	"encoding/binary"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// Column is a column of a table map.
type Column struct {
	Name      string
	Type      byte
	Meta      []byte
	Unsigned  bool
	Collation uint64 // of text columns
	Labels    []string
}

// Table is a table map.
type Table struct {
	ID       uint64
	Database string
	Name     string
	Columns  []Column
	Key      []byte // places of the primary key
	Bare     bool   // without optional metadata
}

func lenencBytes(s string) []byte { return append([]byte{byte(len(s))}, s...) }

// Body is the body of the TABLE_MAP event.
func (t *Table) Body() []byte {
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], t.ID)
	b := append([]byte{}, id[:6]...)
	b = append(b, 1, 0)
	b = append(append(b, lenencBytes(t.Database)...), 0)
	b = append(append(b, lenencBytes(t.Name)...), 0)
	n := len(t.Columns)
	b = append(b, byte(n))
	var meta, names, collations, sign []byte
	numeric := 0
	for i := range t.Columns {
		c := &t.Columns[i]
		b = append(b, c.Type)
		meta = append(meta, c.Meta...)
		names = append(names, lenencBytes(c.Name)...)
		switch c.Type {
		case 1, 2, 3, 4, 5, 8, 9, 13, 246:
			if numeric%8 == 0 {
				sign = append(sign, 0)
			}
			if c.Unsigned {
				sign[numeric/8] |= 0x80 >> (numeric % 8)
			}
			numeric++
		case 15, 252, 253, 254:
			if c.Collation < 251 {
				collations = append(collations, byte(c.Collation))
			} else {
				collations = append(collations, 252, byte(c.Collation), byte(c.Collation>>8))
			}
		}
	}
	b = append(b, byte(len(meta)))
	b = append(b, meta...)
	for range (n + 7) / 8 {
		b = append(b, 0xFF) // every column may be NULL
	}
	if t.Bare {
		return b
	}
	field := func(kind byte, v []byte) {
		if len(v) == 0 {
			return
		}
		b = append(b, kind)
		if len(v) < 251 {
			b = append(b, byte(len(v)))
		} else {
			b = append(b, 252, byte(len(v)), byte(len(v)>>8))
		}
		b = append(b, v...)
	}
	field(1, sign)
	field(3, collations)
	field(4, names)
	field(8, t.Key)
	return b
}

// Map writes the table map.
func (w *Writer) Map(t *Table) { w.Event(binlog.TableMap, 0, t.Body()) }

// Rows writes a row event of version 2. Rows holds for each image the bitmap of
// NULLs and the values.
func (w *Writer) Rows(kind binlog.Type, t *Table, rows []byte) {
	w.Event(kind, 0, RowsBody(kind, t, rows))
}

// RowsBody is the body of a row event of version 2 with full images.
func RowsBody(kind binlog.Type, t *Table, rows []byte) []byte {
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], t.ID)
	b := append([]byte{}, id[:6]...)
	b = append(b, 1, 0, 2, 0, byte(len(t.Columns)))
	full := make([]byte, (len(t.Columns)+7)/8)
	for i := range t.Columns {
		full[i/8] |= 1 << (i % 8)
	}
	b = append(b, full...)
	if kind == binlog.UpdateRowsV2 || kind == binlog.PartialUpdateRows {
		b = append(b, full...)
	}
	return append(b, rows...)
}
