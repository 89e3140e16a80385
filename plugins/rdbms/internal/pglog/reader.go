package pglog

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgout"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var (
	_ sdk.Reader     = (*Reader)(nil)
	_ sdk.Releaser   = (*Reader)(nil)
	_ sdk.Discoverer = (*Reader)(nil)
)

// Reader reads the log of one database.
type Reader struct {
	Positions
	cfg    Config
	start  start
	filter scan.Filter
	srv    *pgcat.Server
	cat    *pgcat.Catalog
	sql    *pgconn.PgConn

	slot, publication string

	points   []point
	here     place // everything before it was delivered or is none of the task's
	moved    bool  // here is ahead of what was delivered
	toldAt   time.Time
	ended    error // what Next returns from here on
	tx       tx
	rowMsg   pgout.RowMsg
	posBuf   []byte
	rels     map[uint32]*relation
	items    map[uint32]*tableItem
	versions map[uint32]uint64
	waited   atomic.Int64 // snapshots that did not show all that they have to
	nextID   uint32

	spills    map[uint32]*spill
	segment   *spill
	segmentID uint32

	snap    handover
	windows map[uint32]*window
	win     struct{ until lsn }

	handed handed
	asked  asked
	now    *slab
	next   int
	watch  *watch

	mu   sync.Mutex // guards pump and low against Durable and Close
	pump *pump
	low  lsn // durable
}

// point is one of the points given to Open.
type point struct {
	place
	ordinal uint64
	zero    bool
}

// New returns a reader of the database that the url names.
func New(cfg Config) (*Reader, error) {
	cfg = cfg.withDefaults()
	if p := cfg.Validate(); len(p) > 0 {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "%s", p[0])
	}
	srv, err := pgcat.Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	s, _ := parseStart(cfg.Start)
	f, _ := scan.NewFilter(cfg.Tables)
	return &Reader{cfg: cfg, start: s, filter: f, srv: srv, cat: pgcat.NewCatalog()}, nil
}

func (r *Reader) reset() {
	r.stop()
	r.points, r.here, r.moved, r.ended = nil, place{}, false, nil
	r.tx = tx{}
	r.rels, r.items, r.versions, r.nextID = map[uint32]*relation{}, map[uint32]*tableItem{}, map[uint32]uint64{}, 0
	r.spills, r.segment = map[uint32]*spill{}, nil
	r.snap, r.windows = handover{}, map[uint32]*window{}
	r.win.until, r.now, r.next = 0, nil, 0
	r.low = 0
	r.asked.mu.Lock()
	r.asked.news, r.asked.waiting, r.asked.low = nil, nil, place{}
	r.asked.mu.Unlock()
}

// Open finds the place to begin at and makes slot and publication ready.
func (r *Reader) Open(ctx context.Context, ex sdk.Execution, points []sdk.Point, state []batch.StateItem) error {
	r.reset()
	r.slot, r.publication = r.cfg.names(ex.TaskUID)
	for i := range points {
		p := points[i].Position
		if p.IsZero() {
			r.points = append(r.points, point{zero: true})
			continue
		}
		pl, err := placeOf(p)
		if err != nil {
			return err
		}
		r.points = append(r.points, point{place: pl, ordinal: p.Ordinal})
	}
	for i := range state {
		if err := r.restore(&state[i]); err != nil {
			return err
		}
	}
	err := r.prepare(ctx)
	if err != nil {
		r.stop()
	}
	return err
}

func (r *Reader) restore(it *batch.StateItem) error {
	id, ok := strings.CutPrefix(it.Key, tableKey)
	if !ok || it.Deleted {
		return nil
	}
	oid, err := strconv.ParseUint(id, 10, 32)
	var t tableItem
	if err == nil {
		err = json.Unmarshal(it.Value, &t)
	}
	if err != nil {
		return sdk.Faultf(sdk.CodeInvalidPosition, "reader state %q: %v", it.Key, err).Suggest("delete the task with --release, so that it starts over")
	}
	t.version = it.Version
	r.items[uint32(oid)] = &t
	return nil
}

// Next appends transactions until out is full.
func (r *Reader) Next(ctx context.Context, out *batch.Builder) error {
	for more := true; more && r.ended == nil && !out.Full() && ctx.Err() == nil; {
		n, err := r.step(ctx, out)
		switch {
		case err == nil && n == needInput:
			more, err = r.receive(ctx, out)
		case n == handOver:
			more = false
		}
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				break
			}
			r.ended = r.fault(err)
		}
	}
	if err := r.pause(out); err != nil {
		return err
	}
	r.handed.publish(r.here)
	if r.ended != nil {
		return r.ended
	}
	if out.Empty() {
		return ctx.Err()
	}
	return nil
}

// need says what step needs to go on.
type need uint8

const (
	needNothing need = iota
	needInput        // more of the log
	handOver         // what out holds is to be handed over
)

// step takes one step.
func (r *Reader) step(ctx context.Context, out *batch.Builder) (need, error) {
	switch {
	case r.tx.replay != nil:
		return needNothing, r.replayOne(ctx, out)
	case !r.tx.active && r.asked.newlyAsked() && !r.pending():
		return needNothing, r.accept(out)
	case !r.tx.active && len(r.asked.waiting) > 0 && !r.pending() && time.Since(r.asked.tried) >= askedEvery:
		return needNothing, r.begun(ctx)
	case !r.tx.active && r.snap.due(r.here.lsn):
		if !out.Empty() {
			return handOver, nil
		}
		return needNothing, r.chunk(ctx, out)
	case r.now == nil:
		return needInput, nil
	case r.next == len(r.now.msgs):
		r.pump.recycle(r.now)
		r.now = nil
		return needInput, nil
	}
	m := &r.now.msgs[r.next]
	r.next++
	if m.from == m.to {
		r.alive(m.wal)
		return needNothing, nil
	}
	return needNothing, r.message(ctx, out, r.now.data[m.from:m.to])
}

// alive takes a sign of life: every transaction that committed before wal was
// sent.
func (r *Reader) alive(wal lsn) {
	if r.tx.active || r.segment != nil || wal <= r.here.lsn {
		return
	}
	r.here.lsn, r.here.step = wal, 0
	r.moved = true
}

// idleEvery is how often a position is reported while nothing for the task passes.
const idleEvery = time.Second

// receive takes what has been received; where nothing has, it waits if out is
// empty. While nothing for the task comes it reports how far the log was read.
func (r *Reader) receive(ctx context.Context, out *batch.Builder) (more bool, err error) {
	if r.pump == nil {
		if !out.Empty() {
			return false, nil
		}
		if err := r.connect(ctx); err != nil {
			return false, err
		}
	}
	if out.Empty() && r.moved && time.Since(r.toldAt) >= idleEvery {
		if err := r.progress(out); err != nil || !out.Empty() {
			return false, err
		}
	}
	select {
	case s, ok := <-r.pump.full:
		return true, r.received(s, ok)
	default:
	}
	if !out.Empty() {
		return false, nil
	}
	wait := idleEvery
	if len(r.asked.waiting) > 0 {
		wait = askedEvery
	}
	tick := time.NewTimer(wait)
	defer tick.Stop()
	select {
	case s, ok := <-r.pump.full:
		return true, r.received(s, ok)
	case <-tick.C:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (r *Reader) received(s *slab, ok bool) error {
	if !ok {
		return r.pump.err
	}
	r.now, r.next = s, 0
	return nil
}

// progress delivers an empty transaction that moves the position on.
func (r *Reader) progress(out *batch.Builder) error {
	r.toldAt = time.Now()
	if !r.moved || r.tx.active {
		return nil
	}
	r.moved = false
	if err := out.BeginTx(batch.Tx{Begins: true, Covers: r.coverEmpty()}); err != nil {
		return err
	}
	r.posBuf = r.here.append(r.posBuf[:0])
	return out.EndTx(true, nil, r.posBuf)
}

// coverEmpty are the points that are at or behind here already.
func (r *Reader) coverEmpty() []batch.Cover {
	var c []batch.Cover
	for i := range r.points {
		if p := &r.points[i]; !p.zero && p.place.compare(r.here) >= 0 {
			c = append(c, batch.Cover{Point: i})
		}
	}
	return c
}

// Durable says that the source may forget what lies before a position.
func (r *Reader) Durable(_ context.Context, upTo sdk.Position) error {
	p, err := placeOf(upTo)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.low = max(r.low, p.lsn)
	r.asked.mu.Lock()
	if p.compare(r.asked.low) > 0 {
		r.asked.low = p
	}
	r.asked.mu.Unlock()
	if r.pump == nil {
		return nil
	}
	return r.pump.durable(r.low)
}

// Close ends the connections. The slot stays.
func (r *Reader) Close(context.Context) error {
	r.stop()
	return nil
}

func (r *Reader) stop() {
	r.mu.Lock()
	p := r.pump
	r.pump = nil
	r.mu.Unlock()
	if p != nil {
		p.close()
	}
	if r.watch != nil {
		r.watch.close()
		r.watch = nil
	}
	r.snap.close()
	pgcat.Close(r.sql)
	r.sql = nil
	for _, s := range r.spills {
		s.close()
	}
	if r.tx.replay != nil {
		r.tx.replay.spill.close()
	}
}
