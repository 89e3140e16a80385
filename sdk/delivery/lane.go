package delivery

import (
	"sync/atomic"
	"time"

	"github.com/datalink-go/datalink/sdk"
)

// lane is a queue of items and the goroutine that writes them.
type lane struct {
	run *run
	no  int32

	// Under run.mu.
	queue   []item    // published by the dispatcher, not yet taken over
	front   place     // where the lane may stand once it has committed frontN items
	frontN  uint64    // counted from the run's begin
	point   sdk.Point // as stored
	at      mark      // of point
	advance bool      // store the position although there is nothing to write
	last    time.Time // of the last commit
	waiting bool      // for something to do
	saw     uint64    // version of what was published when it began to wait
	parked  bool
	retired bool // other lanes have taken its place

	done atomic.Uint64 // items committed

	// Of the lane's goroutine.
	mine  []item
	head  int
	taken uint64 // items before mine[head]
	seg   segments

	// Of the dispatcher.
	staged  []item
	total   uint64 // items staged since the run's begin
	placeN  uint64 // of them, those before the place that is reached
	place   place
	cut     bool   // a target transaction may end before the next item
	lastTx  uint64 // source transaction of which changes were staged or covered
	met     bool   // a transaction that it does not cover was met
	caught  bool   // all that the lane covers lies behind: its position may move
	free    bool   // it was so from the beginning of the stream
	gate    []wait // for the next item: a unit that the lane had no part in
	resume  mark   // what was committed before the attempt
	covered uint64 // of the current transaction: ordinals below it
}

// job is what a lane does next.
type job struct {
	n     int    // items to commit
	to    place  // the progress after them
	group *group // meet the other lanes
}

func (l *lane) work() {
	for {
		j, ok := l.next()
		if !ok {
			return
		}
		switch {
		case j.group != nil:
			l.meet(j.group)
		default:
			l.run.deliver(l, []*lane{l}, l.mine[l.head:l.head+j.n], j.to, nil)
		}
	}
}

// next waits for something to do. It reports false when the run stops.
func (l *lane) next() (job, bool) {
	r := l.run
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch r.state {
		case stopping:
			l.waiting = true
			return job{}, false
		case failing:
			l.parked = true
			r.cond.Broadcast()
			for r.state == failing {
				r.cond.Wait()
			}
			l.parked = false
			continue
		}
		if l.retired {
			return job{}, false
		}
		l.fetch()
		if j, ok := l.pick(); ok {
			l.waiting = false
			return j, true
		}
		if l.head == len(l.mine) && l.head > 0 {
			clear(l.mine) // lets go of blocks
			l.mine, l.head = l.mine[:0], 0
		}
		l.wait()
	}
}

// wait waits for a change, and tells those who watch when it begins to. It is
// called with run.mu held.
func (l *lane) wait() {
	r := l.run
	if !l.waiting || l.saw != r.version {
		l.waiting, l.saw = true, r.version
		r.cond.Broadcast()
	}
	r.cond.Wait()
}

// fetch takes over what the dispatcher has published.
func (l *lane) fetch() {
	if len(l.queue) == 0 {
		return
	}
	if l.head == len(l.mine) {
		l.mine, l.queue, l.head = l.queue, l.mine[:0], 0
		return
	}
	if l.head > 0 {
		n := copy(l.mine, l.mine[l.head:])
		l.mine, l.head = l.mine[:n], 0
	}
	l.mine = append(l.mine, l.queue...)
	l.queue = l.queue[:0]
}

// pick decides what to do with what is there.
func (l *lane) pick() (job, bool) {
	r := l.run
	items := l.mine[l.head:]
	if len(items) > 0 {
		first := &items[0]
		if !r.ready(first.waits) {
			return job{}, false
		}
		if first.kind == itemGroup {
			return job{group: first.group}, true
		}
	}
	var j job
	records, bytes := 0, 0
	for i := range items {
		x := &items[i]
		if i > 0 {
			must := x.kind == itemGroup || !r.ready(x.waits) && !r.cfg.Switches.MergeAcrossWait
			if x.begins(&items[i-1]) || must && x.apart(&items[i-1]) {
				j = job{n: i, to: x.before()}
			}
			if must || j.n > 0 && (records >= r.cfg.Records || bytes >= r.cfg.Bytes) {
				return j, j.n > 0
			}
		}
		records++
		bytes += x.ev.Size()
	}
	switch {
	case !l.front.set:
	case len(items) > 0 && l.frontN == l.taken+uint64(len(items)):
		return job{n: len(items), to: l.front}, true
	case j.n == 0 && l.frontN == l.taken && l.advances():
		return job{to: l.front}, true
	}
	return j, j.n > 0
}

// advances reports whether the position alone is to be stored.
func (l *lane) advances() bool {
	now := l.advance || l.run.draining || l.run.e.tw == nil
	l.advance = false
	return now && l.lags()
}

// lags reports whether the place that is reached is beyond what is stored. It lies
// behind that where the lane's last batch was cut inside of a transaction, before a
// change that still waits.
func (l *lane) lags() bool {
	return !samePosition(l.front.pos, l.point.Position) && !l.front.mark.before(l.at)
}

// ready reports whether all that is waited for is committed.
func (r *run) ready(waits []wait) bool {
	for _, w := range waits {
		if r.lanes[w.lane].done.Load() <= w.n {
			return false
		}
	}
	return true
}

// meet waits for the other lanes of the group; the last one to come commits it
// for all.
func (l *lane) meet(g *group) {
	r := l.run
	r.mu.Lock()
	g.arrived++
	if g.arrived < len(g.lanes) {
		for !g.done && r.state == running {
			l.wait()
		}
		l.waiting = false
		if g.done {
			l.head++
			l.taken++
		}
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	lanes := make([]*lane, len(g.lanes))
	for i, no := range g.lanes {
		lanes[i] = r.lanes[no]
	}
	r.deliver(l, lanes, g.items, g.after, g)
}
