package delivery

import (
	"errors"
	"maps"
	"slices"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// dispatcher reads blocks and gives their events to lanes.
type dispatcher struct {
	run      *run
	registry *batch.Registry
	plans    map[*batch.Schema]*plan
	tables   map[string]*table
	gen      uint64 // of the knowledge about foreign keys
	waits    waits
	touch    toucher

	points []int64 // lanes of the points given to the reader, -2 = another writer's
	began  bool    // a request was taken since the beginning or the last reset
	last   *plan

	// Where the stream is.
	at        sdk.Position // after the last transaction
	known     bool         // at may be stored
	open      bool         // inside a transaction
	relaned   bool         // the lanes are not those that the points speak of
	want      int32        // lanes to change to at the next place that allows it; 0 = no change
	txID      uint64
	start     sdk.Position
	inside    sdk.Position
	startOK   bool
	stood     bool   // it was decided whether lanes may stand inside the transaction
	next      uint64 // ordinal after the last change of the transaction
	records   int    // of the open transaction since its begin or the last split
	size      int
	unit      *group // collects what has no positions to stand at
	last0     place  // the last place before it
	ev        batch.Event
	stays     bool // of ev
	cur       *request
	count     int // items of cur not yet counted in it
	skipped   uint64
	staged    int // items of all lanes not yet published
	runnable  bool
	coversAny bool
	real      bool              // the transaction is more than a sign of life
	moved     map[string][]byte // rows that the transaction has moved, by table and new key
	partial   bool              // part of the transaction was not seen, or was skipped
}

// reset forgets where the stream is: the next request is one that was sent
// before.
func (d *dispatcher) reset() {
	d.began, d.open, d.unit, d.cur, d.count = false, false, nil, nil, 0
	d.waits = waits{}
	d.skipped, d.staged = 0, 0
	for _, l := range d.run.lanes {
		l.cut = false
	}
}

// request takes one request.
func (d *dispatcher) request(req *wire.WriteRequest) error {
	r := d.run
	if err := d.recover(); err != nil {
		return err
	}
	r.mu.Lock()
	if req.Attempt > r.attempt {
		if r.state == running && d.began {
			// The host sends again of itself.
			r.state = failing
			r.cond.Broadcast()
			for r.state == failing && !r.allParked() {
				r.cond.Wait()
			}
			r.drop()
		}
		if r.state == running {
			r.attempt = req.Attempt
		}
		if r.state == failing {
			r.state, r.attempt = running, req.Attempt
			r.cond.Broadcast()
			r.news.Broadcast()
		}
	}
	if r.state == stopping {
		defer r.mu.Unlock()
		return r.err
	}
	if r.state == failing || req.Attempt < r.attempt {
		r.mu.Unlock()
		return nil
	}
	if err := d.room(); err != nil {
		r.mu.Unlock()
		return err
	}
	if r.state != running {
		r.mu.Unlock()
		return nil // refused meanwhile: it will come again
	}
	q := &request{}
	if n := len(r.spare); n > 0 {
		q, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	q.seq, q.req, q.size, q.left = req.Seq, req, len(req.Block), 1
	d.cur, d.count = q, 0
	if q.moved = nil; len(d.moved) > 0 {
		q.moved = maps.Clone(d.moved)
	}
	r.inflight = append(r.inflight, q)
	r.pending += q.size
	if req.DeadlineMicros != 0 {
		r.deadline = req.DeadlineMicros
	}
	r.mu.Unlock()

	if !d.began {
		if err := d.begin(req); err != nil {
			return err
		}
	}
	if err := d.block(q); errors.Is(err, errRefused) {
		return nil
	} else if err != nil {
		return err
	}
	r.mu.Lock()
	d.settle()
	r.accepted = max(r.accepted, q.seq)
	r.skipped += d.skipped
	d.skipped = 0
	r.mu.Unlock()
	if req.Drain {
		if err := d.drain(); err != nil {
			return err
		}
	}
	r.mu.Lock()
	q.left--
	if r.state == running {
		r.acknowledge()
	}
	r.mu.Unlock()
	r.news.Broadcast()
	return nil
}

// settle adds what was staged to what the request waits for. It is called with
// run.mu held.
func (d *dispatcher) settle() {
	if d.cur != nil {
		d.cur.left += d.count
	}
	d.count = 0
}

// room waits until not too much is taken, as long as the lanes have work. It is
// called with run.mu held.
func (d *dispatcher) room() error {
	r := d.run
	for r.state == running && r.pending > r.cfg.Pending && r.working() {
		r.cond.Wait()
	}
	if r.state == stopping {
		return r.err
	}
	return nil
}

// working reports whether a lane may still commit something of what it has.
func (r *run) working() bool {
	for _, l := range r.lanes {
		if !l.waiting || l.saw != r.version {
			return true
		}
	}
	return false
}

// begin sets up what the first request says.
func (d *dispatcher) begin(req *wire.WriteRequest) error {
	r := d.run
	d.began = true
	if len(req.Lanes) > 0 && !d.relaned {
		d.points = slices.Clone(req.Lanes)
	}
	for _, l := range d.points {
		if l != -2 && (l < 0 || l >= int64(len(r.lanes))) {
			return sdk.Faultf(sdk.CodeInternal, "block %d: it names lane %d, the writer has lanes 0 to %d", req.Seq, l, len(r.lanes)-1)
		}
	}
	d.at, d.known = req.First, len(req.First.Source) > 0
	d.at.Ordinal = 0
	d.last0 = place{pos: req.First, mark: mark{seq: req.Seq}, set: d.known}
	if d.at.Format == "" {
		d.at.Format, d.at.Version = req.Last.Format, req.Last.Version
	}
	r.mu.Lock()
	for _, l := range r.lanes {
		l.caught = l.caught || l.point.Position.IsZero() || samePosition(l.point.Position, req.First) || !d.relaned && slices.Contains(req.Behind, int64(l.no))
		l.free = l.caught
	}
	r.mu.Unlock()
	return nil
}

func (d *dispatcher) block(q *request) error {
	r := d.run
	req := q.req
	if d.at.Format == "" { // the blocks so far gave no position
		d.at.Format, d.at.Version = req.Last.Format, req.Last.Version
	}
	if len(req.Block) == 0 {
		q.block, q.txs = batch.Block{}, q.txs[:0]
	} else if err := q.block.Decode(req.Block, d.registry, r.cfg.Limits); err != nil {
		return sdk.Faultf(sdk.CodeInternal, "block %d: %v", req.Seq, err)
	}
	n := len(q.block.Txs)
	if len(req.Block) == 0 {
		n = 0
	}
	q.txs = slices.Grow(q.txs[:0], n+1)[:n+1]
	if len(req.SetAside)+len(req.Dropped) > 0 {
		if err := d.aside(q); err != nil {
			return err
		}
	}
	for i := range n {
		if err := d.tx(q, i); err != nil {
			return err
		}
	}
	// A transaction above the limit may be split at the end of the block too: the
	// window may have no room for what follows before this is durable.
	large := r.cfg.SplitRecords > 0 && d.records >= r.cfg.SplitRecords || r.cfg.SplitBytes > 0 && d.size > r.cfg.SplitBytes
	if (req.Split || large) && d.open && n > 0 && q.txs[n-1].known && d.unit == nil {
		d.records, d.size = 0, 0
		d.inner(q, n-1)
	}
	return nil
}

// event gives one event to its lanes.
func (d *dispatcher) event(q *request, i, at int) error {
	r := d.run
	kind := q.block.Kind(at)
	single := len(r.lanes) == 1
	if kind == batch.Heartbeat || kind == batch.Origin {
		if err := q.block.Event(at, &d.ev); err != nil {
			return err
		}
		d.next = max(d.next, d.ev.Ordinal+1)
		return nil
	}
	if kind == batch.DDL || !single && !kind.IsRow() {
		return d.barrier(q, i, at)
	}
	if single {
		l := r.lanes[0]
		x := l.stage()
		if err := q.block.Event(at, &x.ev); err != nil {
			return err
		}
		d.split(q, i, &x.ev)
		d.next = max(d.next, x.ev.Ordinal+1)
		x.stays = d.track(&x.ev)
		if d.skips(l, q, i, x.ev.Ordinal) {
			l.unstage()
			return nil
		}
		if kind != batch.State {
			p, err := d.planOf(&x.ev, q, i)
			if err != nil {
				return err
			}
			x.plan = p
			switch {
			case kind == batch.Range:
				if ok, err := d.reconcile(x, p); err != nil || !ok {
					l.unstage()
					return err
				}
			case p.table.watched() || kind == batch.Read:
				d.see(&x.ev, p)
			}
			if len(x.ev.OldKey) > 0 && splits(p, &x.ev) {
				x.parts = partBoth
			}
		}
		d.commitStage(l, x, q, i, at)
		return nil
	}
	return d.spread(q, i, at)
}

// splits reports whether a change of key is a remove and an upsert.
func splits(p *plan, ev *batch.Event) bool {
	return !p.referenced && (ev.After.Complete() || ev.Before.Complete())
}

// stage opens the next item of the lane.
func (l *lane) stage() *item {
	n := len(l.staged)
	if n < cap(l.staged) {
		l.staged = l.staged[:n+1]
	} else {
		l.staged = append(l.staged, item{})
	}
	x := &l.staged[n]
	x.kind, x.parts, x.inner, x.cut, x.stays, x.plan, x.group, x.waits = itemEvent, partWhole, false, false, false, nil, nil, nil
	return x
}

func (l *lane) unstage() { l.staged = l.staged[:len(l.staged)-1] }

// commitStage keeps the item that stage opened.
func (d *dispatcher) commitStage(l *lane, x *item, q *request, i, at int) {
	x.at, x.txAt, x.ordinal, x.tx, x.req = at, i, x.ev.Ordinal, &q.txs[i], q
	x.inner = l.lastTx == d.txID
	l.lastTx = d.txID
	l.total++
	if l.gate != nil {
		x.waits, l.gate = slices.Concat(x.waits, l.gate), nil
	}
	d.count++
	d.staged++
	d.records++
	d.size += x.ev.Size()
	x.cut, l.cut = l.cut, false
}
