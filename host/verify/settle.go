package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// suspect is a key that differed when it was looked at.
type suspect struct {
	place
	link  *link
	refs  []ref // rows of the source that may belong to it
	named int   // 1 + place among the rows that are named, 0 = it is not
	known bool  // it was counted as different
	mends int
}

// mendTries bounds how often a key that stays different is written.
const mendTries = 3

// settle looks again at keys that differed until each is equal, or different for
// certain, or the tries are over.
func (r *runner) settle(ctx context.Context, w *target, at int, list []*suspect) error {
	t := &r.state.Results[at]
	t.Suspects += uint64(len(list))
	if r.cfg.NoSettle {
		for _, s := range list {
			r.found(at, s, "different", nil)
		}
		return nil
	}
	for len(list) > 0 {
		n := min(2*keysAtOnce, len(list))
		part := list[:n]
		list = list[n:]
		pause := 10 * time.Millisecond
		for try := 1; len(part) > 0; try++ {
			left, err := r.again(ctx, w, at, part)
			if err != nil {
				return err
			}
			part = left
			if len(part) == 0 {
				break
			}
			if try >= r.cfg.Tries {
				for _, s := range part {
					if !s.known {
						r.state.Results[at].Unsettled++
					}
				}
				break
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
			pause = min(2*pause, 2*time.Second)
		}
	}
	return nil
}

// again compares keys between the beginning and the end of a watch. It returns those
// that are to be looked at once more.
func (r *runner) again(ctx context.Context, w *target, at int, list []*suspect) ([]*suspect, error) {
	refs := map[ref]bool{}
	keys := map[string][][]byte{}
	for _, s := range list {
		for _, x := range s.refs {
			if !refs[x] {
				refs[x] = true
				name := r.tables[x.table].Name()
				keys[name] = append(keys[name], []byte(x.key))
			}
		}
	}
	watch := r.cfg.Stream.Watch(keys)
	defer watch.Close()
	changed := func(s *suspect) bool {
		for _, x := range s.refs {
			if watch.Changed(r.tables[x.table].Name(), []byte(x.key)) {
				return true
			}
		}
		return false
	}
	want := map[place]row{}
	_, highs, err := r.expectKeys(ctx, w, refs, want, true)
	if err != nil {
		return nil, err
	}
	if err := r.await(ctx, highs); err != nil {
		return nil, err
	}
	have := map[place]row{}
	byLink := map[*link][]string{}
	for _, s := range list {
		if x, ok := want[s.place]; ok {
			s.link = x.link
		}
		byLink[s.link] = append(byLink[s.link], s.key)
	}
	for l, keys := range byLink {
		if err := r.scanKeys(ctx, w, l, keys, have, true); err != nil {
			return nil, err
		}
	}
	var left, mend []*suspect
	for _, s := range list {
		x, is := want[s.place]
		y, there := have[s.place]
		switch {
		case is == there && (!is || r.equal(&x, &y)):
			r.settled(at, s)
		case changed(s):
			left = append(left, s)
		default:
			if !s.known {
				kind := "different"
				switch {
				case !there:
					kind = "missing"
				case !is:
					kind = "extra"
				}
				r.found(at, s, kind, func() []Column { return r.columns(s.link, x.data, y.data) })
			}
			if r.state.Repair && s.mends < mendTries {
				mend = append(mend, s)
			}
		}
	}
	if len(mend) > 0 {
		if err := r.mend(ctx, w, highs, mend, want, have, changed); err != nil {
			return nil, err
		}
	}
	return append(left, mend...), nil
}

// equal compares by value: sums may have been made before it was known which columns
// the target lacks.
func (r *runner) equal(x, y *row) bool {
	return len(r.columns(x.link, x.data, y.data)) == 0
}

// await waits until the target holds what the rows of the source show.
func (r *runner) await(ctx context.Context, highs []*wire.RangeReply) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CatchUp)
	defer cancel()
	for _, a := range highs {
		if err := r.cfg.Stream.Await(ctx, a.High); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				return sdk.Faultf(sdk.CodeDeadline, "the target has not caught up within %s with the place of the rows that were read", r.cfg.CatchUp).
					Suggest("look at the task's lag, and go on with --resume when it is small")
			}
			return err
		}
	}
	return nil
}

// found counts and names a key that differs.
func (r *runner) found(at int, s *suspect, kind string, columns func() []Column) {
	t := &r.state.Results[at]
	s.known = true
	switch kind {
	case "missing":
		t.Missing++
	case "extra":
		t.Extra++
	default:
		t.Different++
	}
	if len(t.Differing) >= maxDiffering {
		return
	}
	x := Row{Table: s.table, Key: keyText(s.link.schema, []byte(s.key)), Kind: kind}
	if kind == "different" && columns != nil {
		x.Columns = columns()
	}
	t.Differing = append(t.Differing, x)
	s.named = len(t.Differing)
}

// settled notes that a key is equal.
func (r *runner) settled(at int, s *suspect) {
	if !s.known {
		return
	}
	t := &r.state.Results[at]
	t.Repaired++
	if s.named > 0 {
		t.Differing[s.named-1].Repaired = true
	}
}

// columns lists the columns in which two rows of one layout differ.
func (r *runner) columns(l *link, want, have []byte) []Column {
	a, err := valuesOf(want)
	if err != nil {
		return []Column{{Name: "?", Source: err.Error()}}
	}
	b, err := valuesOf(have)
	if err != nil {
		return []Column{{Name: "?", Target: err.Error()}}
	}
	var out []Column
	for i := range min(len(a), len(b), len(l.schema.Columns)) {
		c := &l.schema.Columns[i]
		if b[i].State == batch.Absent || a[i].State == batch.Absent {
			continue
		}
		if x, y := appendNormal(nil, c, &a[i]), appendNormal(nil, c, &b[i]); string(x) != string(y) {
			out = append(out, Column{Name: c.Name, Source: shown(c, &a[i]), Target: shown(c, &b[i])})
		}
	}
	return out
}

func eventOf(data []byte) (*batch.Event, error) {
	var b batch.Block
	if err := b.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
		return nil, err
	}
	if b.Len() == 0 {
		return nil, fmt.Errorf("%w: a row is gone", batch.ErrCorrupt)
	}
	e := new(batch.Event)
	return e, b.Event(0, e)
}

func valuesOf(data []byte) ([]batch.Value, error) {
	e, err := eventOf(data)
	if err != nil {
		return nil, err
	}
	return e.After.Values(nil)
}

// mend writes keys that differ through the stream: rows of the source as they were
// read, deletions where it has none.
func (r *runner) mend(ctx context.Context, w *target, highs []*wire.RangeReply, list []*suspect, want, have map[place]row, changed func(*suspect) bool) error {
	var high sdk.Position
	if n := len(highs); n > 0 {
		high = highs[n-1].High
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CatchUp)
	defer cancel()
	err := r.cfg.Stream.Write(ctx, w.Name, high, func(put *pipeline.Put) error {
		for _, gone := range []bool{true, false} { // values that are unique become free first
			for _, s := range list {
				x, is := want[s.place]
				if is == gone || changed(s) {
					continue
				}
				data := x.data
				if gone {
					data = have[s.place].data
				}
				e, err := eventOf(data)
				if err != nil {
					return err
				}
				if err := put.Row(func(out *batch.Builder) error { return rewrite(out, e, gone) }); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if errors.Is(err, pipeline.ErrNotWritten) && ctx.Err() == nil {
		err = nil // looking again tells
	}
	for _, s := range list {
		s.mends++
	}
	return err
}

// rewrite appends a row, or its deletion, in a layout whose id the stream does not
// use for another one.
func rewrite(out *batch.Builder, e *batch.Event, gone bool) error {
	s := Layout(e.Schema)
	vals, err := e.After.Values(nil)
	if err != nil {
		return err
	}
	kind, side := batch.Read, batch.AfterImage
	if gone {
		kind, side = batch.Delete, batch.BeforeImage
	}
	if err := out.BeginRow(kind, s); err != nil {
		return err
	}
	out.BeginImage(side)
	for i := range vals {
		out.PutValue(&vals[i])
	}
	out.EndImage()
	return out.EndRow()
}
