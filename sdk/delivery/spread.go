package delivery

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// laneOf returns the lane of a row.
func (d *dispatcher) laneOf(p *plan, key []byte) *lane {
	lanes := d.run.lanes
	if p.oneLane {
		return lanes[0]
	}
	return lanes[d.touch.laneHash(p, key)%uint64(len(lanes))]
}

// spread gives a row to its lane among several; a change of key may concern two.
func (d *dispatcher) spread(q *request, i, at int) error {
	if err := q.block.Event(at, &d.ev); err != nil {
		return err
	}
	ev := &d.ev
	d.split(q, i, ev)
	d.next = max(d.next, ev.Ordinal+1)
	d.stays = d.track(ev)
	p, err := d.planOf(ev, q, i)
	if err != nil {
		return err
	}
	if p.table.watched() || ev.Kind == batch.Read {
		d.see(ev, p)
	}
	l := d.laneOf(p, ev.Key)
	if len(ev.OldKey) == 0 {
		return d.give(l, p, q, i, at, partWhole)
	}
	old := d.laneOf(p, ev.OldKey)
	switch {
	case splits(p, ev) && old == l:
		return d.give(l, p, q, i, at, partBoth)
	case splits(p, ev):
		if err := d.give(old, p, q, i, at, partOld); err != nil {
			return err
		}
		return d.give(l, p, q, i, at, partNew)
	case old == l:
		return d.give(l, p, q, i, at, partWhole)
	}
	return d.together(old, l, p, q, i, at)
}

// give stages one part of the event in ev.
func (d *dispatcher) give(l *lane, p *plan, q *request, i, at int, parts uint8) error {
	if d.skips(l, q, i, d.ev.Ordinal) {
		return nil
	}
	waits, err := d.tie(l.no, l.total, p, parts)
	if err != nil {
		return err
	}
	x := l.stage()
	x.ev, x.plan, x.parts, x.waits, x.stays = d.ev, p, parts, waits, d.stays
	if waits != nil {
		d.runnable = true
	}
	d.commitStage(l, x, q, i, at)
	return nil
}

// tie registers what the event in ev touches and returns what it waits for.
func (d *dispatcher) tie(lane int32, n uint64, p *plan, parts uint8) ([]wait, error) {
	if !p.tied {
		return nil, nil
	}
	r := d.run
	if d.waits.need == nil {
		d.waits.need = make([]uint64, len(r.lanes))
	}
	touches, err := d.touch.of(p, &d.ev, parts)
	if err != nil {
		return nil, err
	}
	d.waits.touch(touches, lane, n, r.lanes)
	waits := d.waits.take(lane, r.lanes)
	if r.cfg.Switches.LaneWaitOff {
		return nil, nil
	}
	return waits, nil
}

// together makes two lanes meet for a change of key that is one statement.
func (d *dispatcher) together(old, l *lane, p *plan, q *request, i, at int) error {
	a, b := d.skips(old, q, i, d.ev.Ordinal), d.skips(l, q, i, d.ev.Ordinal)
	if a && b {
		return nil
	}
	if a != b {
		return sdk.Faultf(sdk.CodeInternal, "block %d, event %d: lanes %d and %d change a key of %s together, and one of them has done so already",
			q.seq, at, old.no, l.no, p.table.name)
	}
	waits, err := d.tie(l.no, l.total, p, partWhole)
	if err != nil {
		return err
	}
	x := item{ev: d.ev, plan: p, at: at, txAt: i, ordinal: d.ev.Ordinal, tx: &q.txs[i], req: q}
	g := &group{lanes: []int32{min(old.no, l.no), max(old.no, l.no)}}
	x.group = g
	g.items = append(g.items, x)
	g.after = d.placeAfter(q, i, at, &x)
	d.count++
	d.group(g, waits, q, i, x.ordinal)
	return nil
}

// unitEvent collects an event of a transaction that lies between places where
// no lane may stand: all lanes commit it, and those around it, at once.
func (d *dispatcher) unitEvent(q *request, i, at int) error {
	r := d.run
	x := item{at: at, txAt: i, req: q, tx: &q.txs[i]}
	if err := q.block.Event(at, &x.ev); err != nil {
		return err
	}
	x.ordinal = x.ev.Ordinal
	d.next = max(d.next, x.ordinal+1)
	switch x.ev.Kind {
	case batch.Heartbeat, batch.Origin:
		return nil
	case batch.DDL:
		return sdk.Faultf(sdk.CodeUnsupportedEvent, "block %d, event %d: ddl at a place for which the source gives no position", q.seq, at)
	case batch.State:
		if !d.skips(r.lanes[0], q, i, x.ordinal) {
			d.collect(x)
		}
		return nil
	}
	p, err := d.planOf(&x.ev, q, i)
	if err != nil {
		return err
	}
	x.plan, x.stays = p, d.track(&x.ev)
	switch {
	case x.ev.Kind == batch.Range:
		if ok, err := d.reconcile(&x, p); err != nil || !ok {
			return err
		}
	case p.table.watched() || x.ev.Kind == batch.Read:
		d.see(&x.ev, p)
	}
	if !x.ev.Kind.IsRow() {
		if !d.skips(r.lanes[0], q, i, x.ordinal) {
			d.collect(x)
		}
		return nil
	}
	l := d.laneOf(p, x.ev.Key)
	skip := d.skips(l, q, i, x.ordinal)
	if len(x.ev.OldKey) == 0 {
		if !skip {
			d.collect(x)
		}
		return nil
	}
	old := d.skips(d.laneOf(p, x.ev.OldKey), q, i, x.ordinal)
	split := splits(p, &x.ev)
	switch {
	case skip && old:
		return nil
	case !split && skip != old:
		return sdk.Faultf(sdk.CodeInternal, "block %d, event %d: one of two lanes has changed a key of %s already", q.seq, at, p.table.name)
	case split && skip:
		x.parts = partOld
	case split && old:
		x.parts = partNew
	case split:
		x.parts = partBoth
	}
	d.collect(x)
	return nil
}

func (d *dispatcher) collect(x item) {
	d.count++
	d.unit.items = append(d.unit.items, x)
}

// endUnit hands the unit to the lanes: there is a place to stand again.
func (d *dispatcher) endUnit(q *request, p place) {
	g := d.unit
	d.unit = nil
	if len(g.items) == 0 {
		return
	}
	g.after = p
	var others []*lane
	for _, l := range d.run.lanes {
		if (l.caught || l.met) && !p.mark.before(l.resume) {
			g.lanes = append(g.lanes, l.no)
		} else {
			others = append(others, l)
		}
	}
	d.group(g, nil, q, p.mark.tx-1, 0)
	first := d.run.lanes[g.lanes[0]]
	for _, l := range others {
		l.gate = append(l.gate, wait{first.no, first.total - 1})
	}
}
