package delivery

import (
	"cmp"
	"slices"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
	"github.com/datalink-go/datalink/sdk/wire"
)

// replies is what the host is told. It is under run.mu.
type replies struct {
	inflight []*request // taken and not acknowledged, in order
	spare    []*request
	pending  int // bytes of inflight
	attempt  uint32
	accepted uint64
	acked    uint64
	skipped  uint64
	moved    bool // a position was stored since the last reply
	sent     struct{ accepted, acked uint64 }
}

// failure is the refusal of records.
type failure struct {
	seq     uint64
	records []wire.RecordFault
}

// committed notes that the items are durable in the lanes and the lanes are at
// the place.
func (r *run) committed(l *lane, lanes []*lane, items []item, next []sdk.Next, to place, g *group) {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	for i := range items {
		items[i].req.left--
	}
	if g != nil {
		g.hold.left--
		g.done = true
		l.head++
		l.taken++
		for _, x := range lanes {
			x.done.Add(1)
		}
	} else {
		l.head += len(items)
		l.taken += uint64(len(items))
		l.done.Add(uint64(len(items)))
	}
	for i, x := range lanes {
		x.point, x.at, x.last = next[i].Point, to.mark, now
	}
	r.moved = true
	r.acknowledge()
	r.mu.Unlock()
	r.cond.Broadcast()
	r.news.Broadcast()
}

// acknowledge moves acked over what is durable.
func (r *run) acknowledge() {
	n := 0
	for n < len(r.inflight) && r.inflight[n].left == 0 {
		q := r.inflight[n]
		r.acked = q.seq
		r.pending -= q.size
		q.req = nil
		if len(r.spare) < 64 {
			r.spare = append(r.spare, q)
		}
		n++
	}
	if n > 0 {
		rest := copy(r.inflight, r.inflight[n:])
		clear(r.inflight[rest:])
		r.inflight = r.inflight[:rest]
	}
}

// points returns the progress of all lanes.
func (r *run) points() []sdk.Point {
	out := make([]sdk.Point, len(r.lanes))
	for i, l := range r.lanes {
		out[i] = l.point
	}
	return out
}

// reply sends what was accepted and acknowledged whenever that has changed. What
// changes while a reply is on its way goes into the next one.
func (r *run) reply() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for !r.flushed && (r.state == failing || r.accepted == r.sent.accepted && r.acked == r.sent.acked && !r.moved) {
			r.news.Wait() // a refusal tells the rest itself
		}
		if r.accepted == r.sent.accepted && r.acked == r.sent.acked && !r.moved || r.ctx.Err() != nil {
			return
		}
		m := &wire.WriteReply{Accepted: r.accepted, Acked: r.acked, Attempt: r.attempt, Skipped: r.skipped}
		if r.acked != r.sent.acked || r.moved {
			m.Points = r.points()
		}
		ack := r.acked != r.sent.acked
		r.sent.accepted, r.sent.acked, r.skipped, r.moved = r.accepted, r.acked, 0, false
		r.mu.Unlock()
		err := r.send(m)
		if ack && err == nil {
			failpoint.Hit("delivery.acked")
		}
		if err != nil {
			r.stop(err)
		}
		r.mu.Lock()
		if err != nil {
			return
		}
	}
}

func (r *run) send(m *wire.WriteReply) error {
	r.sendMu.Lock()
	defer r.sendMu.Unlock()
	return r.stream.Send(m)
}

// refused notes that records cannot be written. The reply names those of the
// first block among them: once they are out of the way, the others are met again.
func (r *run) refused(owners []owner, items []item, records []sdk.RecordError) {
	var f *failure
	for _, o := range owners {
		i := slices.IndexFunc(records, func(e sdk.RecordError) bool { return e.Index == int(o.change) })
		if i < 0 {
			continue
		}
		it := &items[o.item]
		switch {
		case f == nil || it.req.seq < f.seq:
			f = &failure{seq: it.req.seq}
		case it.req.seq > f.seq:
			continue
		}
		f.records = append(f.records, wire.RecordFault{Index: uint64(it.at), Fault: *records[i].Err})
	}
	if f == nil {
		r.stop(sdk.Faultf(sdk.CodeInternal, "the writer refused change %d of %d, which it was not given", records[0].Index, len(owners)))
		return
	}
	slices.SortStableFunc(f.records, func(a, b wire.RecordFault) int { return cmp.Compare(a.Index, b.Index) })
	f.records = slices.CompactFunc(f.records, func(a, b wire.RecordFault) bool { return a.Index == b.Index })
	r.mu.Lock()
	if r.state != stopping {
		r.state = failing
	}
	if r.failure == nil || f.seq < r.failure.seq {
		r.failure = f
	}
	r.mu.Unlock()
	r.wake()
}

// recover answers a refusal once all lanes have stopped. It returns the error of
// a run that has failed.
func (d *dispatcher) recover() error {
	r := d.run
	r.mu.Lock()
	for r.state == failing && !r.allParked() {
		r.cond.Wait()
	}
	if r.state == stopping {
		defer r.mu.Unlock()
		return r.err
	}
	if r.state != failing || r.failure == nil {
		r.mu.Unlock()
		return nil
	}
	m := &wire.WriteReply{
		Accepted: r.accepted, Acked: r.acked, Attempt: r.attempt, Points: r.points(), Skipped: r.skipped,
		FailedSeq: r.failure.seq, Records: r.failure.records,
	}
	r.failure = nil
	r.skipped, r.moved = 0, false
	r.sent.accepted, r.sent.acked = r.accepted, r.acked
	r.drop()
	r.mu.Unlock()
	return r.send(m)
}

func (r *run) allParked() bool {
	for _, l := range r.lanes {
		if !l.parked {
			return false
		}
	}
	return true
}

// drop forgets everything that is not acknowledged.
func (r *run) drop() {
	r.d.moved = nil
	if len(r.inflight) > 0 {
		r.d.moved = r.inflight[0].moved
	}
	clear(r.inflight)
	r.inflight, r.pending = r.inflight[:0], 0
	for _, l := range r.lanes {
		l.queue, l.mine, l.head, l.taken = nil, nil, 0, 0
		l.front, l.frontN, l.advance = place{}, 0, false
		l.done.Store(0)
		l.staged, l.total, l.placeN, l.place = nil, 0, 0, place{}
		l.lastTx, l.gate = 0, nil
		l.resume = l.at
		if l.met = false; l.at == (mark{}) {
			l.caught = l.free // it has committed nothing of what comes again
		}
	}
	r.d.reset()
}
