package delivery

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

type state uint8

const (
	running state = iota
	failing       // records were refused: everything waits for the next attempt
	stopping
)

// run is one stream.
type run struct {
	e      *Engine
	cfg    *Config
	stream Stream
	ctx    context.Context
	lanes  []*lane // changed under mu
	crew   sync.WaitGroup

	trouble chan struct{} // records were refused, or the run has failed

	mu       sync.Mutex
	cond     *sync.Cond // lanes and dispatcher
	news     *sync.Cond // replies
	state    state
	err      error // why the run stops
	failure  *failure
	version  uint64 // of what is published
	draining bool
	deadline int64
	flushed  bool // no lane will commit any more
	replies

	sendMu sync.Mutex

	// Of the dispatcher.
	d dispatcher
}

func newRun(e *Engine, c *sdk.Claimed, s Stream) *run {
	r := &run{e: e, cfg: &e.cfg, stream: s, trouble: make(chan struct{}, 1)}
	r.cond, r.news = sync.NewCond(&r.mu), sync.NewCond(&r.mu)
	r.lanes = r.newLanes(c.Points)
	r.d = dispatcher{run: r, registry: batch.NewRegistry(), plans: map[*batch.Schema]*plan{}, tables: map[string]*table{}, gen: 1}
	if n := r.e.ex.Lanes; e.tw != nil && n != int32(len(r.lanes)) {
		r.d.want = n
	}
	return r
}

func (r *run) newLanes(points []sdk.Point) []*lane {
	n := len(points)
	if n == 0 {
		n = int(r.e.ex.Lanes)
	}
	if r.e.tw == nil {
		n = 1
	}
	lanes := make([]*lane, n)
	for i := range lanes {
		l := &lane{run: r, no: int32(i), last: r.cfg.Clock.Now()}
		l.seg.config = r.cfg
		l.point = sdk.Point{Writer: r.e.ex.Writer, Lane: int32(i)}
		for _, p := range points {
			if p.Lane == l.no {
				l.point.BatchNo, l.point.Position = p.BatchNo, p.Position
			}
		}
		lanes[i] = l
	}
	return lanes
}

func (r *run) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.ctx = ctx
	defer context.AfterFunc(ctx, func() { r.stop(ctx.Err()) })()

	input := make(chan received, 16)
	go r.receive(ctx, input) // ends when the stream does, see Stream
	var replier, rest sync.WaitGroup
	for _, l := range r.lanes {
		r.crew.Go(l.work)
	}
	replier.Go(r.reply)
	rest.Go(func() { r.tick(ctx) })

	err := r.d.loop(ctx, input)
	r.stop(err)
	r.crew.Wait()
	r.mu.Lock()
	r.flushed = true
	r.mu.Unlock()
	r.news.Broadcast()
	replier.Wait()
	cancel()
	rest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.err, errDone) {
		return nil
	}
	return r.err
}

var errDone = errors.New("done")

// stop ends the run. The first cause counts; nil says that all is done.
func (r *run) stop(err error) {
	if err == nil {
		err = errDone
	}
	r.mu.Lock()
	if r.state != stopping {
		r.state, r.err = stopping, err
	}
	r.mu.Unlock()
	r.wake()
}

func (r *run) wake() {
	r.cond.Broadcast()
	r.news.Broadcast()
	select {
	case r.trouble <- struct{}{}:
	default:
	}
}

type received struct {
	req *wire.WriteRequest
	err error
}

func (r *run) receive(ctx context.Context, out chan<- received) {
	for {
		req, err := r.stream.Recv()
		select {
		case out <- received{req, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// tick makes lanes without work store their positions now and then.
func (r *run) tick(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.cfg.Clock.After(r.cfg.Advance):
		}
		now := r.cfg.Clock.Now()
		r.mu.Lock()
		for _, l := range r.lanes {
			if now.Sub(l.last) >= r.cfg.Advance {
				l.advance = true
			}
		}
		r.mu.Unlock()
		r.cond.Broadcast()
	}
}

// loop takes requests until the stream ends.
func (d *dispatcher) loop(ctx context.Context, input <-chan received) error {
	r := d.run
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.trouble:
			if err := d.recover(); err != nil {
				return err
			}
		case in := <-input:
			if in.err != nil {
				if !errors.Is(in.err, io.EOF) {
					return in.err
				}
				return d.finish()
			}
			if err := d.request(in.req); err != nil {
				return err
			}
			d.publish(len(input) == 0)
		}
	}
}
