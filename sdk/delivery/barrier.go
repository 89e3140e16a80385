package delivery

import (
	"errors"
	"math"
	"slices"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// barrier gives one event to all lanes together: they come to one position, and
// then it is done in a target transaction that advances all of them.
func (d *dispatcher) barrier(q *request, i, at int) error {
	r := d.run
	var x item
	if err := q.block.Event(at, &x.ev); err != nil {
		return err
	}
	d.next = max(d.next, x.ev.Ordinal+1)
	skips := 0
	for _, l := range r.lanes {
		if d.skips(l, q, i, x.ev.Ordinal) {
			skips++
		}
	}
	if skips == len(r.lanes) {
		return nil
	}
	if skips > 0 {
		return sdk.Faultf(sdk.CodeInternal, "block %d, event %d: %d of %d lanes have the %s already", q.seq, at, skips, len(r.lanes), x.ev.Kind)
	}
	g := &group{}
	x.at, x.txAt, x.ordinal, x.tx, x.req = at, i, x.ev.Ordinal, &q.txs[i], q
	if x.ev.Schema != nil {
		p, err := d.planOf(&x.ev, q, i)
		if err != nil {
			return err
		}
		x.plan = p
		if x.ev.Kind == batch.Range {
			if ok, err := d.reconcile(&x, p); err != nil || !ok {
				return err
			}
			g.seen, g.whole = x.group.seen, x.group.whole
		}
	}
	x.group = g
	g.items = append(g.items, x)
	g.after = d.placeAfter(q, i, at, &x)
	if !g.after.set || !x.tx.known && r.lanes[0].total > 0 {
		return sdk.Faultf(sdk.CodeUnsupportedEvent, "block %d, event %d: %s at a place for which the source gives no position", q.seq, at, x.ev.Kind)
	}
	d.count++
	d.group(g, nil, q, i, x.ordinal)
	if x.ev.Kind != batch.DDL {
		return nil
	}
	// Tables are prepared for rows that follow once the change is done.
	return d.flush()
}

// placeAfter is the place after the event: that after its transaction where it
// is the last of it.
func (d *dispatcher) placeAfter(q *request, i, at int, x *item) place {
	t := &q.block.Txs[i]
	if t.Ends && len(t.End) > 0 && at == t.First+t.Count-1 {
		p := place{pos: d.at, mark: mark{q.seq, i + 1, 0}, set: true}
		p.pos.Source, p.pos.Ordinal = t.End, 0
		return p
	}
	return place{pos: x.tx.within(x.ordinal + 1), mark: mark{q.seq, i, x.ordinal + 1}, set: x.tx.known}
}

// group puts g into the queues of its lanes; nil lanes = all.
func (d *dispatcher) group(g *group, waits []wait, q *request, i int, ordinal uint64) {
	r := d.run
	if g.lanes == nil {
		for _, l := range r.lanes {
			g.lanes = append(g.lanes, l.no)
		}
	}
	g.hold = q
	d.count++
	for _, no := range g.lanes {
		l := r.lanes[no]
		x := l.stage()
		x.ev = batch.Event{}
		x.kind, x.group, x.waits = itemGroup, g, waits
		if l.gate != nil {
			x.waits, l.gate = slices.Concat(waits, l.gate), nil
		}
		x.txAt, x.ordinal, x.tx, x.req = i, ordinal, &q.txs[i], q
		x.inner = l.lastTx == x.tx.id
		l.lastTx = d.txID
		l.total++
		d.staged++
	}
	d.runnable = true
}

// stop waits until the lanes have committed all that comes before the change with
// that ordinal.
func (d *dispatcher) stop(q *request, i int, ordinal uint64) error {
	r := d.run
	info := &q.txs[i]
	total := uint64(0)
	for _, l := range r.lanes {
		total += l.total
	}
	if total == 0 {
		return nil
	}
	d.reach(place{pos: info.within(ordinal), mark: mark{q.seq, i, ordinal}, set: info.known})
	for _, l := range r.lanes {
		l.lastTx = d.txID
	}
	return d.flush()
}

// aside gives the dead letters of the request to the lanes, before its events.
func (d *dispatcher) aside(q *request) error {
	r := d.run
	n := len(q.txs) - 1
	info := &q.txs[n]
	x := item{kind: itemAside, req: q, tx: info}
	if d.open {
		*info = txInfo{id: d.txID, start: d.start, inside: d.inside, known: d.startOK}
		x.ordinal, x.inner = d.next, true
	} else {
		*info = txInfo{id: math.MaxUint64, start: d.at, inside: d.at, known: d.known}
	}
	d.count++
	if d.unit != nil {
		d.unit.items = append(d.unit.items, x)
		return nil
	}
	if len(r.lanes) == 1 {
		s := r.lanes[0].stage()
		*s = x
		r.lanes[0].total++
		d.staged++
		d.runnable = true
		if l := r.lanes[0]; l.caught && !d.open && d.known && !x.before().mark.before(l.resume) {
			l.place, l.placeN = x.before(), l.total
		}
		return nil
	}
	g := &group{items: []item{x}, after: x.before()}
	for _, l := range r.lanes {
		if !l.caught || g.after.mark.before(l.resume) {
			// Its position may not move: one lane stores them where it is.
			g.lanes, g.after = []int32{0}, place{}
		}
	}
	d.group(g, nil, q, n, x.ordinal)
	if g.after.set {
		return nil
	}
	d.publish(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.state == running && !g.done {
		r.cond.Wait()
	}
	return nil
}

// errRefused ends the dispatch of a block of which records were refused: what
// follows must not be prepared at the target before them, and comes again.
var errRefused = errors.New("records were refused")

// flush waits until the lanes have committed everything that is staged.
func (d *dispatcher) flush() error {
	r := d.run
	d.publish(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.state == running && !d.idle(true) {
		r.cond.Wait()
	}
	switch r.state {
	case stopping:
		return r.err
	case failing:
		return errRefused
	}
	return nil
}

// idle reports whether the lanes have committed what is complete, or everything.
func (d *dispatcher) idle(everything bool) bool {
	for _, l := range d.run.lanes {
		n := l.frontN
		if everything {
			n = l.total
		}
		if l.done.Load() < n {
			return false
		}
	}
	return true
}

// drain commits what is complete and brings all lanes to one position.
func (d *dispatcher) drain() error {
	r := d.run
	d.runnable = true
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	d.publish(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.state == running && !d.drained() {
		r.cond.Wait()
	}
	r.draining = false
	if r.state == stopping {
		return r.err
	}
	return nil
}

func (d *dispatcher) drained() bool {
	if !d.idle(false) {
		return false
	}
	for _, l := range d.run.lanes {
		if l.front.set && l.done.Load() == l.frontN && l.lags() {
			return false
		}
	}
	return true
}

// finish is the end of the stream.
func (d *dispatcher) finish() error {
	r := d.run
	d.publish(true)
	if err := d.recover(); err != nil {
		return err
	}
	r.mu.Lock()
	refused := r.state == failing
	r.mu.Unlock()
	if refused {
		return nil // what was refused never came again
	}
	if err := d.drain(); err != nil {
		return err
	}
	return d.recover()
}
