package snapshot

import (
	"bytes"
	"context"
	"slices"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Weave hands over what is ready at the place to which the stream has come. It is
// called between two transactions, with no entry open in out, and opens and closes
// entries of its own. An error ends the stream.
func (w *Weaver) Weave(ctx context.Context, out *batch.Builder, here Place) (Next, error) {
	if !w.active.Load() {
		return Go, nil
	}
	for {
		if w.now == nil {
			next, err := w.choose(here)
			if err != nil || w.now == nil && next != More {
				if err == nil && out.Full() {
					return More, nil
				}
				if err == nil {
					err = w.state(out)
				}
				w.mu.Lock()
				w.finish()
				w.mu.Unlock()
				return next, err
			}
		}
		if out.Full() {
			return More, nil
		}
		if w.now == nil {
			continue
		}
		done, err := w.emit(out)
		if err != nil {
			return Go, err
		}
		if !done {
			return More, nil
		}
	}
}

// choose opens and closes windows and picks the piece that comes next.
func (w *Weaver) choose(here Place) (Next, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.prev = here }()
	if w.fault != nil {
		return Go, w.fault
	}
	w.inform(here)
	w.drop() // before new windows open, which could not tell what was lost
	for _, v := range w.opening {
		v.cur, v.since, v.before, v.low = here, w.number, v.table.changes, string(w.src.Position(0))
		v.table.windows = append(v.table.windows, v)
		v.table.opened = true
		if v.hold() {
			w.held = v
		}
		if v.keys != nil {
			for k := range v.table.touched {
				v.keys = append(v.keys, []byte(k))
			}
		}
		close(v.opened)
	}
	w.opening = w.opening[:0]
	if v := w.held; v != nil {
		next := w.hold(v, here)
		if next == Hold && w.pick(here) {
			return More, nil
		}
		if next == Hold {
			return Hold, nil
		}
	}
	if w.pick(here) {
		return More, nil
	}
	return Go, nil
}

// drop lets go of pieces that are void and of windows that have ended.
func (w *Weaver) drop() {
	n := len(w.pieces)
	w.pieces = slices.DeleteFunc(w.pieces, func(p *piece) bool {
		if p.window.void.Load() {
			p.window.pending--
			w.used -= p.bytes
			w.keep(p)
			if p.window.span != nil {
				p.window.span.lost = true
			}
			return true
		}
		return false
	})
	if len(w.pieces) < n {
		w.cond.Broadcast()
	}
	for _, t := range w.order {
		for _, v := range slices.Clone(t.windows) {
			if v.closed && v.pending == 0 {
				t.leave(v)
				if w.held == v {
					w.held = nil
				}
			}
		}
	}
	if w.open != nil && w.held == nil {
		w.open = nil // the rows so far are written over when they are read again
	}
}

// hold says what to do while one exact place of the stream is wanted.
func (w *Weaver) hold(v *window, here Place) Next {
	if v.void.Load() {
		return Go
	}
	if !v.known || v.settled {
		return Hold
	}
	if n := v.table.changes; n != v.before {
		if v.before = n; !v.view.sees(w.prev, here) {
			// Whether the snapshot sees the change is not known.
			v.void.Store(true)
			w.cond.Broadcast()
			return Go
		}
	}
	if !here.reached(v.view.high) {
		return Go
	}
	v.settled = true
	return Hold
}

// pick finds a piece whose place has come.
func (w *Weaver) pick(here Place) bool {
	for i, p := range w.pieces {
		v := p.window
		if !v.known || !w.due(v, here) || v.hold() && !v.settled {
			continue
		}
		w.pieces = slices.Delete(w.pieces, i, i+1)
		w.now = p
		return true
	}
	return false
}

func (w *Weaver) due(v *window, here Place) bool {
	if w.cfg.Switches.Executed && v.view.high.File == "" {
		return covers(here.GTID, v.view.high.GTID)
	}
	return here.reached(v.view.high)
}

// emit hands over the current piece, or as much of it as there is room for.
func (w *Weaver) emit(out *batch.Builder) (done bool, err error) {
	p := w.now
	v := p.window
	if !p.began {
		if err := w.begin(out, p); err != nil {
			return false, err
		}
	}
	if err := out.BeginTx(batch.Tx{Begins: p.ordinal == 0, Ordinal: p.ordinal, ID: itemKey(v.table.name)}); err != nil {
		return false, err
	}
	if p.first && p.ordinal == 0 {
		if err := out.Truncate(p.schema); err != nil {
			return false, err
		}
	}
	n := 0
	if p.out != nil {
		n = p.block.Len()
	}
	var ev batch.Event
	for ; p.next < n; p.next++ {
		if out.Full() {
			_, p.ordinal = out.OpenTx()
			p.ordinal = max(p.ordinal, 1)
			return false, out.EndTx(false, p.start, nil)
		}
		if err := p.block.Event(p.next, &ev); err != nil {
			return false, err
		}
		if !v.hold() && v.changed(ev.Key) && !w.cfg.Switches.KeepChange {
			continue
		}
		if err := out.CopyEvent(&ev); err != nil {
			return false, err
		}
		if len(ev.Key) > 0 {
			p.keys = append(p.keys, ev.Key)
		}
	}
	return true, w.end(out, p)
}

// begin sees to it that the entry of the piece begins at a position that no other
// entry begins or ends at.
func (w *Weaver) begin(out *batch.Builder, p *piece) error {
	p.began = true
	if w.open != nil {
		p.start, p.ordinal, w.open = w.open.start, w.open.ordinal, nil
		return nil
	}
	if err := w.stand(out); err != nil {
		return err
	}
	p.start = bytes.Clone(w.src.Position(w.here))
	return nil
}

// stand gives the place where the stream is a step of its own, so that the entry
// that follows has a known beginning whatever came before.
func (w *Weaver) stand(out *batch.Builder) error {
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return err
	}
	return out.EndTx(true, nil, w.advance())
}

func (w *Weaver) advance() []byte {
	w.step++
	w.here = w.step
	return bytes.Clone(w.src.Position(w.here))
}

// end closes the piece: what range it was, and the progress that it makes.
func (w *Weaver) end(out *batch.Builder, p *piece) error {
	v := p.window
	t := v.table
	if v.hold() && !p.end {
		_, ordinal := out.OpenTx()
		w.open = &entry{p.start, max(ordinal, 1)}
		w.handedOver(p)
		return out.EndTx(false, p.start, nil)
	}
	last := w.advanceTable(p)
	if !v.hold() {
		r := &batch.KeyRange{Lo: p.lo.key(), Hi: p.hi.key(), Low: []byte(v.low), High: w.src.Position(0), Last: last, Keys: p.keys, Kept: v.kept()}
		if err := out.KeyRange(p.schema, r); err != nil {
			return err
		}
	}
	it, err := t.item(w.nextVersion())
	if err != nil {
		return err
	}
	if err := out.StateItem(it); err != nil {
		return err
	}
	t.stated = true
	if err := out.EndTx(true, nil, w.advance()); err != nil {
		return err
	}
	w.handedOver(p)
	return nil
}

// advanceTable notes in the table what the piece brings, and reports whether it is
// the last one.
func (w *Weaver) advanceTable(p *piece) (last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := p.window
	t := v.table
	t.begun = true
	t.phase = Running
	t.rows += uint64(p.rows)
	if v.keys != nil {
		// All that was held back was read here; what comes later is passed on.
		for _, k := range v.keys {
			delete(t.touched, string(k))
		}
		if len(t.touched) == 0 {
			t.phase = Done
		}
		w.cond.Broadcast()
		return true
	}
	sp := v.span
	sp.after, sp.done = p.hi, p.end
	if p.end && sp.to != nil {
		sp.after = sp.to
	}
	for _, o := range t.spans {
		if !o.done {
			return false
		}
	}
	if t.exact = len(t.touched) > 0; !t.exact {
		t.phase = Done
	}
	w.cond.Broadcast()
	return true
}

// handedOver lets go of the piece.
func (w *Weaver) handedOver(p *piece) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used -= p.bytes
	w.keep(p)
	w.handed += uint64(p.rows)
	p.window.pending--
	w.now = nil
	w.cond.Broadcast()
}

// state puts states of tables into the stream that came without a piece.
func (w *Weaver) state(out *batch.Builder) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var items []*batch.StateItem
	for _, t := range w.order {
		if w.open != nil || t.stated || t.phase == Pending && !t.asked && len(t.touched) == 0 {
			continue
		}
		it, err := t.item(w.nextVersion())
		if err != nil {
			return err
		}
		items = append(items, it)
		t.stated = true
	}
	if !w.pauseStated && w.open == nil {
		items = append(items, &batch.StateItem{Key: pauseKey, Version: w.nextVersion(), Value: []byte("1"), Deleted: !w.paused})
		w.pauseStated = true
	}
	waiting := slices.ContainsFunc(w.requests, func(q *request) bool { return q.end == nil })
	if len(items) == 0 && !waiting || w.open != nil {
		return nil
	}
	if err := w.stand(out); err != nil {
		return err
	}
	if err := out.BeginTx(batch.Tx{Begins: true, ID: itemPrefix}); err != nil {
		return err
	}
	for _, it := range items {
		if err := out.StateItem(it); err != nil {
			return err
		}
	}
	end := w.advance()
	for _, q := range w.requests {
		if q.end == nil {
			q.end = end
		}
	}
	return out.EndTx(true, nil, end)
}
