package verify

import (
	"context"
	"encoding/binary"

	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// walkTarget looks for rows of a table of the target that the source does not have:
// the rows are walked through in the target's order, and their keys looked up at the
// tables of the source that lead there.
func (r *runner) walkTarget(ctx context.Context, w *target, at int) error {
	t := &r.state.Results[at]
	links := w.named[t.Table]
	if len(links) == 0 {
		t.Phase, t.Reason = "skipped", "no row led to it in this run"
		return nil
	}
	l := links[0]
	q := &wire.RangeRequest{Schema: batch.AppendSchema(nil, l.schema), Lo: t.Cursor, Rows: uint64(r.cfg.ChunkRows)}
	for {
		have := map[place]row{}
		more, err := r.scan(ctx, w, l, q, have, false)
		if err != nil {
			return err
		}
		// Which rows of the source may have led to them.
		refs := map[ref]bool{}
		where := map[place][]ref{}
		for p := range have {
			for _, from := range links {
				if key, ok := r.sourceKey(from, p.key); ok {
					x := ref{from.src, key}
					refs[x] = true
					where[p] = append(where[p], x)
				}
			}
		}
		want := map[place]row{}
		moved, _, err := r.expectKeys(ctx, w, refs, want, false)
		if err != nil {
			return err
		}
		t = &r.state.Results[at]
		if moved || len(where) < len(have) {
			t.Phase, t.Reason = "skipped", "keys of its rows are made by a transform, so that rows which only the target has cannot be told"
			return nil
		}
		t.Compared += uint64(len(want))
		var list []*suspect
		for p, x := range have {
			if _, ok := want[p]; !ok {
				list = append(list, &suspect{place: p, link: x.link, refs: where[p]})
			}
		}
		if err := r.settle(ctx, w, at, list); err != nil {
			return err
		}
		t = &r.state.Results[at]
		if err := r.turn(ctx, t, q.Lo, len(have)); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// sourceKey is the key that a row of the source has whose row in the target has this
// one: the columns that mappings add come first.
func (r *runner) sourceKey(l *link, key string) (string, bool) {
	s, t := r.tables[l.src], l.schema
	added := len(t.Key) - len(s.Key)
	if added < 0 || len(s.Key) == 0 {
		return "", false
	}
	for i := range s.Key {
		if s.Columns[s.Key[i]].Type != t.Columns[t.Key[added+i]].Type {
			return "", false
		}
	}
	rest := []byte(key)
	for i := range added {
		n := t.Columns[t.Key[i]].Type.Width()
		if n == 0 {
			if len(rest) > 1 && rest[0] == 0x80 && rest[1] == 0 {
				return "", false // a raw value, which no mapping adds
			}
			size, w := binary.Uvarint(rest)
			if w <= 0 || size > uint64(len(rest)-w) {
				return "", false
			}
			n = w + int(size)
		}
		if n > len(rest) {
			return "", false
		}
		rest = rest[n:]
	}
	return string(rest), true
}

// expectKeys reads rows of the source by key and maps them. Its replies' last
// position is returned by table of the source.
func (r *runner) expectKeys(ctx context.Context, w *target, refs map[ref]bool, want map[place]row, keep bool) (moved bool, highs []*wire.RangeReply, err error) {
	byTable := map[int][][]byte{}
	for x := range refs {
		byTable[x.table] = append(byTable[x.table], []byte(x.key))
	}
	for src, keys := range byTable {
		def := batch.AppendSchema(nil, r.tables[src])
		for len(keys) > 0 {
			n := min(5*keysAtOnce, len(keys))
			a, err := r.cfg.Source.ReadKeys(ctx, &wire.KeysRequest{Schema: def, Keys: keys[:n]})
			if err != nil {
				return moved, nil, err
			}
			_, m, err := r.expect(ctx, w, src, a.Block, want, keep)
			if err != nil {
				return moved, nil, err
			}
			for p, x := range want {
				if key, ok := r.sourceKey(x.link, p.key); x.ref.table == src && (!ok || key != x.ref.key) {
					moved = true
				}
			}
			_ = m
			a.Block = nil
			highs = append(highs, a)
			keys = keys[n:]
		}
	}
	return moved, highs, nil
}
