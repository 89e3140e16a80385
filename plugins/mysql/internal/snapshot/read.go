package snapshot

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
)

// read reads a span within one snapshot: to its end, or for as long as the
// snapshot may be used.
func (w *Weaver) read(ctx context.Context, s *session, t *table, sp *span) (err error) {
	v := &window{table: t, span: sp}
	defer func() {
		if v.opened != nil {
			err = w.close(ctx, s, v, err)
		}
	}()
	if err := w.window(ctx, s, v); err != nil {
		return err
	}
	sel, err := w.selection(ctx, s, t)
	if err != nil {
		return err
	}
	if sel == nil || identity(sel) != t.key || (len(sel.Schema.Key) == 0) != t.whole {
		// The stream will say so, too; until then it is planned as it is now.
		w.replan(t)
		return errVoid
	}
	if t.whole {
		return w.readWhole(ctx, s, v, sel)
	}
	return w.readSpan(ctx, s, v, sel)
}

// replan has the table planned anew.
func (w *Weaver) replan(t *table) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.planned = false
}

// from names the table in a statement.
func from(sel *rows.Selection) string {
	return " FROM " + server.Quote(sel.Schema.Namespace) + "." + server.Quote(sel.Schema.Table)
}

func (w *Weaver) readSpan(ctx context.Context, s *session, v *window, sel *rows.Selection) error {
	sp := v.span
	b := &shape{weaver: w, window: v, sel: sel, ordinal: 1}
	index := ordered(sel)
	most := w.limit.most(w.cfg.ChunkRows)
	width := 0
	for first := true; ; first = false {
		w.mu.Lock()
		stop := w.paused
		w.mu.Unlock()
		switch {
		case v.void.Load():
			return errVoid
		case !first && (stop || time.Since(v.view.at) > w.cfg.Session):
			return nil // the next window goes on
		}
		limit := most
		if width > 0 {
			limit = max(1, min(most, w.cfg.Piece/width+1))
		}
		if !index {
			limit = 0 // the server sorts the whole table: once
		}
		n, size, err := w.readChunk(ctx, s, b, limit)
		if err != nil {
			return err
		}
		if n > 0 {
			width = max(1, size/n)
		}
		end := limit == 0 || n < limit
		hi := sp.to
		if !end {
			hi = b.here()
		}
		p, err := b.take()
		if err != nil {
			return err
		}
		p.hi, p.end = hi, end
		if err := w.push(ctx, p); err != nil {
			return err
		}
		if err := w.limit.wait(ctx, n); err != nil {
			return err
		}
		if end {
			return nil
		}
	}
}

// readChunk reads up to limit rows that follow what was read of the span, 0 = all.
// What is more than a piece is pushed as it comes.
func (w *Weaver) readChunk(ctx context.Context, s *session, b *shape, limit int) (n, size int, err error) {
	sp := b.window.span
	k := len(b.sel.Schema.Key)
	after := sp.read
	phase := k - 1
	if after == nil {
		phase = 0
	}
	for ; phase >= 0; phase-- {
		sql, err := chunkSQL(b.sel, after, sp.to, phase, limit-n)
		if err != nil {
			return n, size, err
		}
		err = selectRows(ctx, s.Conn, sql, b.sel, func(packet []byte) error {
			if b.size() >= w.cfg.Piece {
				hi := b.here()
				p, err := b.take()
				if err != nil {
					return err
				}
				p.hi = hi
				if err := w.push(ctx, p); err != nil {
					return err
				}
			}
			if err := b.add(packet); err != nil {
				return err
			}
			n++
			size += len(packet)
			return nil
		})
		if err != nil {
			return n, size, err
		}
		if limit > 0 && n >= limit {
			return n, size, nil
		}
	}
	return n, size, nil
}

// chunkSQL selects what follows after in the order of the key, of which the first
// phase columns are those of after.
func chunkSQL(sel *rows.Selection, after, to *mark, phase, limit int) (string, error) {
	var where []string
	if after != nil {
		c, err := sel.After(after.Cursor, phase)
		if err != nil {
			return "", err
		}
		where = append(where, c)
	}
	if to != nil {
		c, err := sel.Within(to.Cursor)
		if err != nil {
			return "", err
		}
		where = append(where, c)
	}
	sql := "SELECT " + sel.List() + from(sel)
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	sql += " ORDER BY " + sel.Order(phase)
	if limit > 0 {
		sql += " LIMIT " + strconv.Itoa(limit)
	}
	return sql, nil
}

// readWhole reads a table without a key in one piece, at one exact place.
func (w *Weaver) readWhole(ctx context.Context, s *session, v *window, sel *rows.Selection) error {
	if err := s.unbounded(ctx, true); err != nil {
		return err
	}
	b := &shape{weaver: w, window: v, sel: sel, ordinal: 1}
	first, rows := true, 0
	give := func(end bool) error {
		p, err := b.take()
		if err != nil {
			return err
		}
		p.first, p.end, first = first, end, false
		rows += p.rows
		if err := w.push(ctx, p); err != nil {
			return err
		}
		return w.limit.wait(ctx, p.rows)
	}
	err := selectRows(ctx, s.Conn, "SELECT "+sel.List()+from(sel), sel, func(packet []byte) error {
		if b.size() >= w.cfg.Piece {
			if err := give(false); err != nil {
				return err
			}
		}
		return b.add(packet)
	})
	if err != nil {
		return err
	}
	if err := give(true); err != nil {
		return err
	}
	if err := s.unbounded(ctx, false); err != nil {
		return err
	}
	return w.settle(ctx, v)
}

// settle waits until all of an exact window was handed over.
func (w *Weaver) settle(ctx context.Context, v *window) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for v.pending > 0 && !v.void.Load() && ctx.Err() == nil {
		w.cond.Wait()
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case v.void.Load():
		return errVoid
	}
	return nil
}

// readHeld reads the rows whose updates were held back, at one exact place.
func (w *Weaver) readHeld(ctx context.Context, s *session, t *table) (err error) {
	v := &window{table: t, keys: [][]byte{}}
	defer func() {
		if v.opened != nil {
			err = w.close(ctx, s, v, err)
		}
	}()
	if err := w.window(ctx, s, v); err != nil {
		return err
	}
	sel, err := w.selection(ctx, s, t)
	if err != nil {
		return err
	}
	if sel == nil {
		w.replan(t)
		return errVoid
	}
	b := &shape{weaver: w, window: v, sel: sel, ordinal: 1}
	for part := range chunked(v.keys, keysAtOnce) {
		if err := selectKeys(ctx, s, sel, part, b.add); err != nil {
			return err
		}
	}
	p, err := b.take()
	if err != nil {
		return err
	}
	p.end = true
	if err := w.push(ctx, p); err != nil {
		return err
	}
	return w.settle(ctx, v)
}

// keysAtOnce is how many keys one statement asks for.
const keysAtOnce = 500

func chunked(keys [][]byte, n int) func(func([][]byte) bool) {
	return func(yield func([][]byte) bool) {
		for len(keys) > 0 {
			k := min(n, len(keys))
			if !yield(keys[:k]) {
				return
			}
			keys = keys[k:]
		}
	}
}

// selectKeys reads the rows that have one of the keys.
func selectKeys(ctx context.Context, s *session, sel *rows.Selection, keys [][]byte, each func([]byte) error) error {
	var where []string
	for _, k := range keys {
		cur, err := sel.CursorOf(k)
		if err != nil {
			return err
		}
		c, err := sel.Equal(cur)
		if err != nil {
			return sdk.Faultf(sdk.CodeInternal, "%v", err)
		}
		where = append(where, "("+c+")")
	}
	return selectRows(ctx, s.Conn, "SELECT "+sel.List()+from(sel)+" WHERE "+strings.Join(where, " OR "), sel, each)
}
