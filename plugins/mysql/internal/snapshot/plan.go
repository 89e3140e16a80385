package snapshot

import (
	"context"
	"encoding/binary"
	"strconv"

	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/sdk/batch"
)

// plan decides how a table is read: in one piece where it has no key, else in
// spans that several workers read.
func (w *Weaver) plan(ctx context.Context, s *session, t *table) error {
	sel, err := w.selection(ctx, s, t)
	if err != nil {
		return err
	}
	if sel == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		t.phase, t.gone, t.stated = Done, true, !t.asked && t.key == ""
		return nil
	}
	count, _, err := s.estimate(ctx, t.name)
	if err != nil {
		return err
	}
	key, whole := identity(sel), len(sel.Schema.Key) == 0
	w.mu.Lock()
	again := t.phase == Running && t.key == key && !whole && len(t.spans) > 0
	w.mu.Unlock()
	var cuts []*mark
	if !again && !whole {
		if cuts, err = w.cuts(ctx, s, sel, count); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.planned, t.estimate = true, max(uint64(count), t.rows)
	if again {
		return nil
	}
	t.key, t.whole, t.spans, t.begun, t.rows, t.exact = key, whole, nil, false, 0, false
	var lo *mark
	for _, c := range append(cuts, nil) {
		t.spans = append(t.spans, &span{table: t, after: lo, read: lo, to: c})
		lo = c
	}
	return nil
}

// cuts finds keys that divide a large table into parts of about the same size.
func (w *Weaver) cuts(ctx context.Context, s *session, sel *rows.Selection, count int64) ([]*mark, error) {
	parts := min(int64(w.cfg.Parallel), count/int64(2*w.cfg.ChunkRows))
	if parts < 2 || !ordered(sel) {
		return nil, nil
	}
	var out []*mark
	add := func(sql string) (bool, error) {
		m, err := w.boundary(ctx, s, sel, sql)
		if m == nil || err != nil {
			return false, err
		}
		if n := len(out); n > 0 && string(out[n-1].Key) == string(m.Key) {
			return true, nil
		}
		out = append(out, m)
		return true, nil
	}
	if lo, hi, ok, err := w.extent(ctx, s, sel); err != nil {
		return nil, err
	} else if ok {
		for i := int64(1); i < parts; i++ {
			at := lo + int64(float64(hi-lo)*float64(i)/float64(parts))
			cur := make(rows.Cursor, len(sel.Schema.Key))
			for k := range cur {
				cur[k] = binary.LittleEndian.AppendUint64(nil, uint64(at))
			}
			c, err := sel.After(cur, 0)
			if err != nil {
				return nil, err
			}
			if more, err := add("SELECT " + sel.List() + from(sel) + " WHERE " + c + " ORDER BY " + sel.Order(0) + " LIMIT 1"); err != nil || !more {
				return out, err
			}
		}
		return out, nil
	}
	var last *mark
	for i := int64(1); i < parts; i++ {
		where := ""
		if last != nil {
			c, err := sel.After(last.Cursor, 0)
			if err != nil {
				return nil, err
			}
			where = " WHERE " + c
		}
		more, err := add("SELECT " + sel.List() + from(sel) + where + " ORDER BY " + sel.Order(0) + " LIMIT 1 OFFSET " + strconv.FormatInt(count/parts, 10))
		if err != nil || !more {
			return out, err
		}
		last = out[len(out)-1]
	}
	return out, nil
}

// boundary reads one row and returns its key; nil: there is none.
func (w *Weaver) boundary(ctx context.Context, s *session, sel *rows.Selection, sql string) (*mark, error) {
	b := &shape{weaver: w, sel: sel}
	var m *mark
	err := selectRows(ctx, s.Conn, sql, sel, func(packet []byte) error {
		if err := b.add(packet); err != nil {
			return err
		}
		m = b.here()
		return nil
	})
	return m, err
}

// extent is the least and the greatest value of a key that is a single integer of
// up to 63 bits.
func (w *Weaver) extent(ctx context.Context, s *session, sel *rows.Selection) (lo, hi int64, ok bool, err error) {
	if len(sel.Schema.Key) != 1 {
		return 0, 0, false, nil
	}
	switch sel.Schema.Columns[sel.Schema.Key[0]].Type {
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64:
	default:
		return 0, 0, false, nil
	}
	name := sel.Order(0)
	res, err := s.Query(ctx, "SELECT MIN("+name+"), MAX("+name+")"+from(sel))
	if err != nil || len(res.Rows) == 0 || res.Rows[0][0] == nil {
		return 0, 0, false, err
	}
	lo, e1 := strconv.ParseInt(res.Rows[0].Text(0), 10, 64)
	hi, e2 := strconv.ParseInt(res.Rows[0].Text(1), 10, 64)
	return lo, hi, e1 == nil && e2 == nil && hi-lo > 0, nil
}
