package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// ref names a row of the source.
type ref struct {
	table int
	key   string
}

// row is a row in one table of the target, as it is or as it should be.
type row struct {
	link *link
	sum  uint64
	ref  ref
	data []byte // a block with the event alone; only where it was asked for
}

// place names a row of the target.
type place struct{ table, key string }

// keysAtOnce bounds the keys of one call.
const keysAtOnce = 100

// walkSource compares the rows of one table of the source, chunk by chunk.
func (r *runner) walkSource(ctx context.Context, w *target, at int) error {
	t := &r.state.Results[at]
	src := -1
	for i, s := range r.tables {
		if s.Name() == t.Table {
			src = i
		}
	}
	if src < 0 {
		t.Phase, t.Reason = "skipped", "the source has no such table any more"
		return nil
	}
	def := batch.AppendSchema(nil, r.tables[src])
	for {
		t = &r.state.Results[at]
		lo := t.Cursor
		a, err := r.cfg.Source.ReadRange(ctx, &wire.RangeRequest{Schema: def, Lo: lo, Rows: uint64(r.cfg.ChunkRows)})
		if err != nil {
			return err
		}
		var hi []byte
		if a.More {
			hi = a.RestLo
		}
		n, err := r.chunk(ctx, w, at, src, a.Block, lo, hi)
		if err != nil {
			return err
		}
		t = &r.state.Results[at]
		if err := r.turn(ctx, t, hi, n); err != nil {
			return err
		}
		if !a.More {
			return nil
		}
	}
}

// chunk compares the rows that were read of a range with those of the target.
func (r *runner) chunk(ctx context.Context, w *target, at, src int, block, lo, hi []byte) (rows int, err error) {
	have := map[place]row{}
	if !w.mixed[src] {
		if err := r.scanRange(ctx, w, w.first[src], lo, hi, have); err != nil {
			return 0, err
		}
	}
	if w.mixed[src] {
		if err := r.probe(ctx, w, src); err != nil {
			return 0, err
		}
	}
	want := map[place]row{}
	rows, moved, err := r.expect(ctx, w, src, block, want, false)
	if err != nil {
		return 0, err
	}
	if moved && !w.mixed[src] {
		// A transform changes keys: what was compared so far holds, extra rows are
		// not found by ranges.
		w.mixed[src] = true
		have = map[place]row{}
	}
	if w.mixed[src] {
		if err := r.findTargets(ctx, w, want, have); err != nil {
			return rows, err
		}
		r.look(w, src)
	}
	t := &r.state.Results[at]
	t.Compared += uint64(len(have))
	var a, b uint64
	for _, x := range want {
		a += x.sum
	}
	for _, x := range have {
		b += x.sum
	}
	t.addSum(a)
	if a == b && len(want) == len(have) {
		return rows, nil
	}
	var list []*suspect
	for p, x := range want {
		if h, ok := have[p]; !ok || h.sum != x.sum {
			list = append(list, &suspect{place: p, link: x.link, refs: []ref{x.ref}})
		}
	}
	for p, x := range have {
		if _, ok := want[p]; !ok {
			s := &suspect{place: p, link: x.link}
			if !w.mixed[src] {
				s.refs = []ref{{src, p.key}}
			}
			list = append(list, s)
		}
	}
	return rows, r.settle(ctx, w, at, list)
}

// look sees to it that the tables of the target to which rows of a mixed table go
// are walked too.
func (r *runner) look(w *target, src int) {
next:
	for _, l := range w.links {
		if l.src != src {
			continue
		}
		for i := range r.state.Results {
			if t := &r.state.Results[i]; t.Side == "target" && t.Writer == w.Name && t.Table == l.name() {
				continue next
			}
		}
		r.state.Results = append(r.state.Results, Table{Writer: w.Name, Table: l.name(), Side: "target", Phase: "pending"})
	}
}

// expect maps rows of the source to what the target should hold. Moved says that a
// row has another key there.
func (r *runner) expect(ctx context.Context, w *target, src int, block []byte, want map[place]row, keep bool) (rows int, moved bool, err error) {
	var in batch.Block
	if err := in.Decode(block, batch.NewRegistry(), batch.Limits{}); err != nil {
		return 0, false, err
	}
	keys := map[uint64]string{} // by ordinal, which outputs keep
	var e batch.Event
	for i := range in.Len() {
		if err := in.Event(i, &e); err != nil {
			return 0, false, err
		}
		if e.Kind.IsRow() {
			keys[e.Ordinal] = string(e.Key)
			rows++
		}
	}
	out, err := w.Mapper.Run(ctx, block)
	if err != nil {
		return rows, false, err
	}
	for i := range out.Len() {
		if err := out.Event(i, &e); err != nil {
			return rows, moved, err
		}
		if !e.Kind.IsRow() {
			continue
		}
		key, ok := keys[e.Ordinal]
		if !ok {
			return rows, moved, fmt.Errorf("the mappings gave a row of %s with ordinal %d, which no row of the source has", e.Schema.Name(), e.Ordinal)
		}
		l := w.link(e.Schema, src)
		moved = moved || l != w.first[src] || string(e.Key) != key
		x := row{link: l, ref: ref{src, key}}
		if x.sum, err = r.sumOf(l, &e); err != nil {
			return rows, moved, err
		}
		if keep {
			if x.data, err = alone(&e); err != nil {
				return rows, moved, err
			}
		}
		want[place{e.Schema.Name(), string(e.Key)}] = x
	}
	return rows, moved, nil
}

func (r *runner) sumOf(l *link, e *batch.Event) (h uint64, err error) {
	if r.vals, err = e.After.Values(r.vals); err != nil {
		return 0, err
	}
	h, r.buf = sum(l.schema, r.vals, l.absent, r.buf)
	return h, nil
}

// alone is a block with one event.
func alone(e *batch.Event) ([]byte, error) {
	b := batch.NewBuilder(batch.Limits{})
	if err := b.CopyEvent(e); err != nil {
		return nil, err
	}
	b.AppendTx(batch.Tx{Begins: true, Ends: true, Ordinal: e.Ordinal})
	data, err := b.Finish()
	return bytes.Clone(data), err
}

// scanRange reads rows of the target.
func (r *runner) scanRange(ctx context.Context, w *target, l *link, lo, hi []byte, have map[place]row) error {
	q := &wire.RangeRequest{Schema: batch.AppendSchema(nil, l.schema), Lo: lo, Hi: hi, Rows: uint64(2 * r.cfg.ChunkRows)}
	for {
		more, err := r.scan(ctx, w, l, q, have, false)
		if err != nil || !more {
			return err
		}
	}
}

// scan does one call and moves its range on.
func (r *runner) scan(ctx context.Context, w *target, l *link, q *wire.RangeRequest, have map[place]row, keep bool) (more bool, err error) {
	a, err := w.Target.Scan(ctx, q)
	if err != nil {
		var f *sdk.Fault
		if errors.As(err, &f) && f.Code == sdk.CodeUnknownTable {
			return false, nil // it holds no rows
		}
		return false, err
	}
	var b batch.Block
	if err := b.Decode(a.Block, batch.NewRegistry(), batch.Limits{}); err != nil {
		return false, err
	}
	var e batch.Event
	for i := range b.Len() {
		if err := b.Event(i, &e); err != nil {
			return false, err
		}
		if !e.Kind.IsRow() {
			continue
		}
		if l.absent == nil {
			if r.vals, err = e.After.Values(r.vals); err != nil {
				return false, err
			}
			l.absent = make([]bool, len(r.vals))
			for k := range r.vals {
				l.absent[k] = r.vals[k].State == batch.Absent
			}
		}
		x := row{link: l}
		if x.sum, err = r.sumOf(l, &e); err != nil {
			return false, err
		}
		if keep {
			if x.data, err = alone(&e); err != nil {
				return false, err
			}
		}
		have[place{l.name(), string(e.Key)}] = x
	}
	if a.More {
		q.Lo, q.Hi = a.RestLo, a.RestHi
	}
	return a.More, nil
}

// findTargets reads the rows of the target that have the keys of want.
func (r *runner) findTargets(ctx context.Context, w *target, want map[place]row, have map[place]row) error {
	byLink := map[*link][]string{}
	for p, x := range want {
		byLink[x.link] = append(byLink[x.link], p.key)
	}
	for l, keys := range byLink {
		if err := r.scanKeys(ctx, w, l, keys, have, false); err != nil {
			return err
		}
	}
	return nil
}

// probe finds out which columns a table of the target lacks: sums leave them out.
func (r *runner) probe(ctx context.Context, w *target, src int) error {
	for _, l := range w.links {
		if l.src != src || l.absent != nil {
			continue
		}
		q := &wire.RangeRequest{Schema: batch.AppendSchema(nil, l.schema), Rows: 1}
		if _, err := r.scan(ctx, w, l, q, map[place]row{}, false); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) scanKeys(ctx context.Context, w *target, l *link, keys []string, have map[place]row, keep bool) error {
	def := batch.AppendSchema(nil, l.schema)
	for len(keys) > 0 {
		n := min(keysAtOnce, len(keys))
		q := &wire.RangeRequest{Schema: def}
		for _, k := range keys[:n] {
			q.Keys = append(q.Keys, []byte(k))
		}
		if _, err := r.scan(ctx, w, l, q, have, keep); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
