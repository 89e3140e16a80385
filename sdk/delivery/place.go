package delivery

import (
	"bytes"
	"math"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// reach says that lanes may stand at p once they have what is staged. A lane
// that covered something stands there only once p is not before what it holds:
// that is so at the very place that it had stored, and where p is behind a
// transaction that it did not have, since a source names no place that neither
// holds the other.
func (d *dispatcher) reach(p place) {
	for _, l := range d.run.lanes {
		d.reachLane(l, p)
	}
	d.runnable = true
}

func (d *dispatcher) reachLane(l *lane, p place) {
	l.caught = l.caught || l.met || samePosition(l.point.Position, p.pos)
	if l.caught && !p.mark.before(l.resume) {
		l.place, l.placeN = p, l.total
	}
}

// split lets all lanes stand before ev where the open transaction has become too
// large to be kept whole. It is all of them, or one would keep what the others
// have committed from being acknowledged, and so the rest from coming. Host outputs
// of one change share its ordinal and stay together.
func (d *dispatcher) split(q *request, i int, ev *batch.Event) {
	c := d.run.cfg
	large := c.SplitRecords > 0 && d.records >= c.SplitRecords || c.SplitBytes > 0 && d.size+ev.Size() > c.SplitBytes
	if !large || d.records == 0 || ev.Ordinal < d.next || !q.txs[i].known {
		return
	}
	d.inner(q, i)
	d.records, d.size = 0, 0
}

// inner lets the lanes stand where the stream is inside of a transaction. One that
// covers more of it stays where it is.
func (d *dispatcher) inner(q *request, i int) {
	p := place{pos: q.txs[i].within(d.next), mark: mark{q.seq, i, d.next}, set: true}
	for _, l := range d.run.lanes {
		l.lastTx = d.txID
		if d.coversAny && d.next < l.covered {
			continue
		}
		d.reachLane(l, p)
		l.cut = true
	}
	d.runnable = true
}

// tx takes the events of one entry of the transaction table.
func (d *dispatcher) tx(q *request, i int) error {
	r := d.run
	t := &q.block.Txs[i]
	info := &q.txs[i]
	if t.Begins || !d.open {
		d.begins(t)
	}
	if err := d.covers(q, i); err != nil {
		return err
	}
	if d.real && !d.stood {
		d.stood = true
		d.stand()
	}
	*info = txInfo{id: d.txID, start: d.start, inside: d.inside, known: d.startOK}
	for _, l := range r.lanes {
		if m := l.resume; m.seq == q.seq && m.tx == i && m.ordinal > 0 {
			l.lastTx = d.txID
		}
	}
	for at := t.First; at < t.First+t.Count; at++ {
		var err error
		if d.unit != nil {
			err = d.unitEvent(q, i, at)
		} else {
			err = d.event(q, i, at)
		}
		if err != nil {
			return err
		}
	}
	if !t.Ends {
		return nil
	}
	d.open = false
	clear(d.moved)
	if len(t.End) == 0 {
		if t.Begins && signOfLife(&q.block, t) {
			return nil // the place is what it was before
		}
		if d.startOK {
			// A lane may stand here by ordinal only.
			d.last0 = place{pos: info.within(d.next), mark: mark{q.seq, i + 1, 0}, set: true}
		}
		d.known = false
		return nil
	}
	d.at.Source, d.at.Ordinal, d.known = t.End, 0, true
	p := place{pos: d.at, mark: mark{q.seq, i + 1, 0}, set: true}
	if d.unit != nil {
		d.endUnit(q, p)
	}
	d.reach(p)
	d.last0 = p
	if d.want != 0 {
		return d.relane(p)
	}
	return nil
}

// signOfLife reports whether an entry has nothing but heartbeats.
func signOfLife(b *batch.Block, t *batch.Tx) bool {
	for at := t.First; at < t.First+t.Count; at++ {
		if b.Kind(at) != batch.Heartbeat {
			return false
		}
	}
	return true
}

// begins notes where a transaction begins.
func (d *dispatcher) begins(t *batch.Tx) {
	d.txID++
	d.start, d.inside, d.startOK = d.at, d.at, d.known
	if len(t.Start) > 0 {
		d.inside.Source = t.Start
		if !d.known && d.txID == 1 {
			d.start, d.startOK = d.inside, true
		}
	}
	d.stood, d.records, d.size = false, 0, 0
	d.open, d.next, d.partial = true, t.Ordinal, !t.Begins
	if t.Begins {
		clear(d.moved)
		return
	}
	// Its earlier changes are done in all lanes.
	for _, l := range d.run.lanes {
		l.lastTx = d.txID
	}
}

// stand decides whether lanes may stand inside the transaction that begins: not
// where a lane lacks it but may hold later ones. Several lanes do it as a unit
// then.
func (d *dispatcher) stand() {
	lanes := d.run.lanes
	for _, l := range lanes {
		if l.caught || d.coversAny && l.covered == math.MaxUint64 {
			continue
		}
		if d.coversAny && l.covered > 0 && bytes.Equal(l.point.Position.Source, d.inside.Source) {
			l.caught = true
			continue
		}
		d.startOK = false
	}
	if !d.startOK && len(lanes) > 1 && d.unit == nil {
		d.unit = &group{from: d.last0}
	}
}

// covers finds out which lanes have the transaction already.
func (d *dispatcher) covers(q *request, i int) error {
	r := d.run
	t := &q.block.Txs[i]
	d.real = t.ID != "" || t.Count > 0 && q.block.Kind(t.First) != batch.Heartbeat
	d.coversAny = false
	if len(t.Covers) > 0 {
		for _, l := range r.lanes {
			l.covered = 0
		}
	}
	for _, c := range t.Covers {
		if len(d.points) == 0 && !r.cfg.Switches.SkipOff {
			return sdk.Faultf(sdk.CodeInternal, "block %d: transaction %s is covered by point %d, but the first request named no lanes", q.seq, t.ID, c.Point)
		}
		if c.Point < 0 || c.Point >= len(d.points) {
			return sdk.Faultf(sdk.CodeInternal, "block %d: transaction %s is covered by point %d of %d", q.seq, t.ID, c.Point, len(d.points))
		}
		if d.points[c.Point] == -2 || r.cfg.Switches.SkipOff {
			continue
		}
		l := r.lanes[d.points[c.Point]]
		d.coversAny = true
		if l.covered = c.Upto; c.Upto == 0 {
			l.covered = math.MaxUint64
		} else {
			// As if the lane had stopped here in this run: it never stands before it.
			l.lastTx = d.txID
			if m := (mark{q.seq, i, c.Upto}); l.resume.before(m) {
				l.resume = m
			}
		}
	}
	if d.real {
		for _, l := range r.lanes {
			l.met = l.met || !d.coversAny || l.covered != math.MaxUint64
		}
	}
	return nil
}

// skips reports whether the lane has the change already.
func (d *dispatcher) skips(l *lane, q *request, i int, ordinal uint64) bool {
	if d.coversAny && ordinal < l.covered {
		d.skipped++
		d.partial = true
		return true
	}
	if l.resume.covers(q.seq, i, ordinal) {
		d.partial = true
		if !l.resume.passed(q.seq, i) {
			l.lastTx = d.txID
		}
		return true
	}
	return false
}
