package writer

import (
	"bytes"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/value"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// encoder makes mutations. Rows and cells share its buffers, which serve one batch
// after the other.
type encoder struct {
	muts   []rpc.Mutation
	owners []int // index of the change, beside muts
	arena  []byte
	cells  []byte
	values []batch.Value
	val    []byte
}

func (e *encoder) reset() {
	e.muts, e.owners, e.arena, e.cells = e.muts[:0], e.owners[:0], e.arena[:0], e.cells[:0]
}

// keep gives bytes that stay as they are while the batch is written.
func (e *encoder) keep(build func(dst []byte) ([]byte, error)) ([]byte, error) {
	if cap(e.arena)-len(e.arena) < 4<<10 {
		e.arena = make([]byte, 0, 256<<10)
	}
	from := len(e.arena)
	out, err := build(e.arena)
	if err != nil {
		return nil, err
	}
	e.arena = out
	return out[from:len(out):len(out)], nil
}

// keyOf returns the row key of a change's key bytes.
func (e *encoder) keyOf(p *plan, key []byte) ([]byte, error) {
	v, err := p.schema.KeyValues(key)
	if err != nil {
		return nil, err
	}
	row, err := e.keep(func(dst []byte) ([]byte, error) { return p.key.Encode(dst, v) })
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeUnfit, "row of %s: %v", p.schema.Name(), err)
	}
	if len(row) > 1<<15-1 {
		return nil, sdk.Faultf(sdk.CodeUnfit, "row of %s: its row key has %d bytes, HBase takes 32767", p.schema.Name(), len(row))
	}
	return row, nil
}

func (e *encoder) begin(row []byte) rpc.Mutation {
	if cap(e.cells)-len(e.cells) < 16<<10 {
		e.cells = make([]byte, 0, 1<<20)
	}
	return rpc.NewMutation(row, e.cells)
}

func (e *encoder) end(w *Writer, m *rpc.Mutation, owner int) {
	e.cells = m.Tail()
	if m.Len() == 0 {
		return
	}
	m.Durability, m.Attributes = w.durability, w.attributes
	e.muts, e.owners = append(e.muts, *m), append(e.owners, owner)
}

// put writes the columns that an image has at a version. Whole says that the row
// is written, not changed: key columns, or the marker, go with it.
func (e *encoder) put(w *Writer, p *plan, row []byte, values []batch.Value, ts uint64, whole bool, owner int) error {
	m := e.begin(row)
	if whole && p.marker != nil {
		m.Put([]byte(p.families[0]), p.marker, ts, nil)
	}
	for i := range p.columns {
		c, v := &p.columns[i], &values[i]
		if c.skip || c.key && !whole {
			continue
		}
		switch v.State {
		case batch.Absent, batch.Unchanged:
		case batch.Null:
			m.Delete(c.family, c.qualifier, ts, rpc.TypeDeleteColumn)
		default:
			var err error
			if e.val, err = value.Append(e.val[:0], p.encoding, &p.schema.Columns[i], v); err != nil {
				return sdk.Faultf(sdk.CodeUnfit, "row of %s: %v", p.schema.Name(), err)
			}
			m.Put(c.family, c.qualifier, ts, e.val)
		}
	}
	e.end(w, &m, owner)
	return nil
}

// remove writes the tombstones of a row.
func (e *encoder) remove(w *Writer, p *plan, row []byte, ts uint64, owner int) {
	if p.loose && w.cfg.Version == ByPosition {
		// A change of key may turn out to be none, and its new row would lie under
		// the tombstones of the old one. Nothing lies between two versions.
		ts--
	}
	m := e.begin(row)
	if w.cfg.Shared {
		for i := range p.columns {
			if c := &p.columns[i]; !c.skip {
				m.Delete(c.family, c.qualifier, ts, rpc.TypeDeleteColumn)
			}
		}
		if p.marker != nil {
			m.Delete([]byte(p.families[0]), p.marker, ts, rpc.TypeDeleteColumn)
		}
	} else {
		for _, f := range p.families {
			m.Delete([]byte(f), nil, ts, rpc.TypeDeleteFamily)
		}
	}
	e.end(w, &m, owner)
}

// same reports whether two rows are one.
func same(a, b []byte) bool { return bytes.Equal(a, b) }
