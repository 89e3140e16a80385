package rows

import (
	"encoding/binary"
	"fmt"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// boundOf says whether a column is a bound of a row's life in a system-versioned
// table of MariaDB. Without a statement that says so the hidden ones are known by
// their names, which stand last.
func boundOf(tm *TableMap, i int, dc *schema.Column, maria bool) schema.System {
	if dc != nil {
		return dc.System
	}
	n := len(tm.Columns)
	if !maria || !tm.HasNames || i < n-2 || n < 3 {
		return schema.NoBound
	}
	a, b := &tm.Columns[n-2], &tm.Columns[n-1]
	if a.Name != "row_start" || b.Name != "row_end" || a.Type != b.Type || a.Type != typeTimestamp2 || a.Meta != 6 || b.Meta != 6 {
		return schema.NoBound
	}
	return schema.RowStart + schema.System(i-(n-2))
}

var sequenceColumns = [...]string{
	"next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size", "cycle_option", "cycle_count",
}

func isSequence(tm *TableMap, def *schema.Table, maria bool) bool {
	if def != nil {
		return def.Sequence
	}
	if !maria || len(tm.Columns) != len(sequenceColumns) {
		return false
	}
	for i := range tm.Columns {
		if tm.Columns[i].Name != sequenceColumns[i] {
			return false
		}
	}
	return true
}

// versioned says what the next row of a system-versioned table is for those who
// see the present alone: rows that ended are the past, and a row that ends is
// deleted. KindInvalid stands for a row that concerns only the past. rest is what
// follows the row.
func (it *Iter) versioned() (kind batch.Kind, rest []byte, err error) {
	b := it.b
	now := [2]bool{true, true}
	for i := range it.sides {
		side := it.first + i
		if now[side], b, err = it.present(b, &it.images[side]); err != nil {
			return 0, nil, err
		}
	}
	kind = it.kind
	switch {
	case it.kind != batch.Update && !now[it.first], it.kind == batch.Update && !now[0] && !now[1]:
		kind = batch.KindInvalid
	case it.kind == batch.Update && now[0] && !now[1]:
		kind = batch.Delete
	case it.kind == batch.Update && !now[0]:
		kind = batch.Insert
	}
	return kind, b, nil
}

// present reports whether the end of a row is the end of time, or is left out of
// the image.
func (it *Iter) present(b []byte, im *image) (bool, []byte, error) {
	nn := (im.count + 7) / 8
	if nn > len(b) {
		return false, nil, it.cut("bitmap of NULLs")
	}
	nulls := b[:nn]
	b = b[nn:]
	now, nth := true, 0
	for i := range it.l.cols {
		c := &it.l.cols[i]
		if im.present[i>>3]&(1<<(i&7)) == 0 {
			continue
		}
		null := nulls[nth>>3]&(1<<(nth&7)) != 0
		nth++
		if null {
			continue
		}
		n, err := c.length(b)
		if err != nil {
			return false, nil, it.errorf(c, err)
		}
		if i == it.l.rowEnd {
			switch {
			case c.op == opTimestamp2 && len(b) >= 4:
				sec := binary.BigEndian.Uint32(b)
				now = sec == 1<<31-1 || sec == 1<<32-1
			case c.op == opUint64:
				now = binary.LittleEndian.Uint64(b) == 1<<64-1
			default:
				return false, nil, fmt.Errorf("%w: end of a versioned row of column type %d", ErrCorrupt, c.op)
			}
		}
		b = b[n:]
	}
	return now, b, nil
}

// pass walks over an image without delivering it.
func (it *Iter) pass(side batch.Side) error {
	_, rest, err := it.present(it.b, &it.images[side])
	if err == nil {
		it.b = rest
	}
	return err
}

// KeepPast makes the iterator deliver rows of the past of system-versioned
// tables as they are in the log.
func (it *Iter) KeepPast() {
	if it.l.rowEnd >= 0 {
		l := *it.l
		l.rowEnd = -1
		it.l = &l
	}
}
