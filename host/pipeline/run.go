package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Result is what a run leaves behind.
type Result struct {
	Ended  bool                   // the source has ended for good
	Points map[string][]sdk.Point // by writer, as last stored
}

// Run moves changes until the source ends, Stop is closed, ctx ends or a fault
// that retries do not mend. The result is valid in each case. It owns neither
// source nor sinks: whoever made them closes them.
func Run(ctx context.Context, cfg Config) (Result, error) {
	cfg = cfg.withDefaults()
	cfg.Writers = slices.Clone(cfg.Writers)
	res := Result{Points: map[string][]sdk.Point{}}
	if len(cfg.Writers) == 0 {
		return res, fmt.Errorf("pipeline of task %s has no writer", cfg.Execution.Task)
	}
	failures := 0
	for {
		r := &round{cfg: &cfg, res: &res}
		moved, err := r.run(ctx)
		for i := range cfg.Writers {
			cfg.Writers[i].Claimed = nil // the next round claims by itself
		}
		switch {
		case err == nil:
			return res, nil
		case ctx.Err() != nil:
			return res, ctx.Err()
		case errors.Is(err, errReopen):
			failures = 0
			continue
		}
		if moved {
			failures = 0
		}
		if !r.readerFault || !retryable(err) {
			return res, err
		}
		if failures++; failures >= cfg.Backoff.Attempts {
			return res, fmt.Errorf("reader: %d tries in a row without progress: %w", failures, err)
		}
		cfg.Observer.Restarted("reader", err)
		cfg.Log.Warn("reader is begun again", "tries", failures, "cause", err)
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-stopped(cfg.Stop):
			return res, nil
		case <-time.After(cfg.Backoff.wait(failures - 1)):
		}
		if errors.Is(err, ErrDied) && cfg.Reader.Reopen != nil {
			src, err := cfg.Reader.Reopen(ctx)
			if err != nil {
				return res, fmt.Errorf("reader: %w", err)
			}
			cfg.Reader.Source = src
		}
	}
}

// commonPlace is where all points stand, between two transactions.
func commonPlace(points []sdk.Point) (sdk.Position, bool) {
	if len(points) == 0 || points[0].Position.IsZero() || points[0].Position.Ordinal != 0 {
		return sdk.Position{}, false
	}
	for _, p := range points[1:] {
		if !samePosition(p.Position, points[0].Position) {
			return sdk.Position{}, false
		}
	}
	return points[0].Position, true
}

func stopped(c <-chan struct{}) <-chan struct{} { return c }

func retryable(err error) bool {
	if errors.Is(err, ErrDied) {
		return true
	}
	f := sdk.AsFault(err)
	return f.Retryable || f.Code == sdk.CodeUnavailable || f.Code == sdk.CodeDeadline
}

// round is one opening of the reader.
type round struct {
	cfg         *Config
	res         *Result
	readerFault bool // the error came from the reader
}

// run claims, opens and streams. Moved says that blocks became durable.
func (r *round) run(ctx context.Context) (moved bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writers, points, state, err := r.claim(ctx)
	if err != nil {
		return false, err
	}
	f := &feed{cfg: r.cfg, chain: newChain("transform", r.cfg.Stages), clock: &versionClock{last: floor(writers)}, wake: make(chan struct{}, 1), points: points, gone: make(chan struct{})}
	f.at, f.known = commonPlace(points)
	win := newWindow(r.cfg.Window, len(writers), f.freed)
	f.win = win
	for _, w := range writers {
		w.win, w.signal = win, win.subscribe()
	}
	if f.stream, err = r.cfg.Reader.Source.Open(ctx, &wire.OpenRequest{Execution: r.cfg.Execution, Points: points, State: state}); err != nil {
		r.readerFault = true
		return false, fmt.Errorf("open the reader: %w", err)
	}
	if b := r.cfg.Beside; b != nil {
		b.begin(f)
		defer b.end(f)
	}
	err = r.stream(ctx, f, win, writers)
	for _, w := range writers {
		r.res.Points[w.cfg.Name] = w.points
		moved = moved || w.acked > 0
	}
	return moved, err
}

// stream runs feed and writers until all have ended.
func (r *round) stream(ctx context.Context, f *feed, win *window, writers []*writer) error {
	readCtx, stopReading := context.WithCancel(ctx)
	defer stopReading()
	workCtx, abandon := context.WithCancel(ctx)
	defer abandon()

	var reading, writing, beside sync.WaitGroup
	var readErr error
	reading.Go(func() {
		readErr = f.receive(readCtx)
		f.order.Lock()
		win.end()
		f.order.Unlock()
	})
	beside.Go(func() {
		if err := f.grants(readCtx); err != nil {
			_ = f.stream.Close()
		}
	})
	beside.Go(func() { r.durable(workCtx, win) })
	beside.Go(func() {
		select {
		case <-readCtx.Done():
		case <-stopped(r.cfg.Stop):
		}
		stopReading()
		_ = f.stream.Close() // ends receive
	})
	errs := make([]error, len(writers))
	for i, w := range writers {
		writing.Go(func() {
			errs[i] = w.serve(workCtx)
			if errs[i] != nil {
				stopReading()
				if !errors.Is(errs[i], errReopen) {
					abandon() // the others stop as well: the task has failed
				}
			}
		})
	}
	writing.Wait()
	drained := workCtx.Err() == nil
	stopReading()
	reading.Wait()
	abandon()
	beside.Wait()
	if drained {
		r.tell(win)
	}
	if err := firstFault(errs, ctx); err != nil {
		return err
	}
	if errors.Is(readErr, errEnd) {
		r.res.Ended = true
		return nil
	}
	select {
	case <-stopped(r.cfg.Stop):
		return nil
	default:
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.readerFault = true
	return readErr
}

// firstFault picks the error to report: a real one before those that only say
// that everything was stopped because of it.
func firstFault(errs []error, ctx context.Context) error {
	var again error
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, errReopen):
			again = err
		case ctx.Err() == nil && errors.Is(err, context.Canceled):
		default:
			return err
		}
	}
	return again
}

// claim gets the progress of all writers and lists it for the reader.
func (r *round) claim(ctx context.Context) ([]*writer, []sdk.Point, []batch.StateItem, error) {
	var writers []*writer
	var points []sdk.Point
	var state []batch.StateItem
	for i := range r.cfg.Writers {
		wc := &r.cfg.Writers[i]
		var c *sdk.Claimed
		var err error
		if wc.Claimed != nil {
			c, err = settle(ctx, r.cfg, wc, wc.Claimed)
		} else {
			c, err = r.reclaim(ctx, wc)
		}
		if err != nil {
			return nil, nil, nil, fmt.Errorf("claim for writer %s: %w", wc.Name, err)
		}
		b := newBuilder(wc, r.cfg.NoGuard, r.cfg.NoSkip)
		b.claimed(c)
		b.offset, b.points = len(points), len(c.Points)
		w := &writer{cfg: wc, run: r.cfg, sink: wc.Sink, build: b, claimed: c, points: c.Points, savedAt: time.Now()}
		w.maps = &mapping{writer: wc.Name, same: len(wc.Stages) == 0, run: func(data []byte) ([]byte, error) {
			out, _, err := b.chain.run(ctx, data)
			return out, err
		}, filtered: func(records int) { r.cfg.Observer.Filtered(wc.Name, records) }}
		writers = append(writers, w)
		points = append(points, c.Points...)
		state = mergeState(state, c.State)
	}
	return writers, points, state, nil
}

// reclaim claims at the beginning of a later round, with a new sink where the
// old one is dead.
func (r *round) reclaim(ctx context.Context, wc *WriterConfig) (*sdk.Claimed, error) {
	for try := 0; ; try++ {
		c, err := claim(ctx, r.cfg, wc)
		if err == nil || ctx.Err() != nil || !retryable(err) || try >= r.cfg.Backoff.Attempts {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(r.cfg.Backoff.wait(try)):
		}
		if errors.Is(err, ErrDied) && wc.Reopen != nil {
			sink, err := wc.Reopen(ctx)
			if err != nil {
				return nil, err
			}
			wc.Sink = sink
		}
	}
}

// mergeState joins the reader state of all writers. Of an item that several hold
// the older version wins: the reader starts at the least position.
func mergeState(have, more []batch.StateItem) []batch.StateItem {
next:
	for _, m := range more {
		for i := range have {
			if have[i].Key == m.Key {
				if m.Version < have[i].Version {
					have[i] = m
				}
				continue next
			}
		}
		have = append(have, m)
	}
	return have
}

// floor is the least version an execution may give: above the clock, and above
// every ceiling that an earlier one had reserved.
func floor(writers []*writer) uint64 {
	var v uint64
	for _, w := range writers {
		v = max(v, w.claimed.Ceiling)
	}
	return v
}

// durable tells the reader what every writer has stored: at most once a second,
// or, where its source waits for that, whenever it is more.
func (r *round) durable(ctx context.Context, win *window) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var changed chan struct{} // nil = never
	if r.cfg.Reader.Prompt {
		changed = win.subscribe()
	}
	var told sdk.Position
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-changed:
		}
		if p := win.stored(); !p.IsZero() && !samePosition(p, told) {
			failpoint.Hit("pipeline.durable")
			if err := r.cfg.Reader.Source.Durable(ctx, p); err != nil {
				r.cfg.Log.Debug("reader did not take the durable position", "cause", err)
				continue
			}
			told = p
		}
	}
}

func (r *round) tell(win *window) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if p := win.stored(); !p.IsZero() {
		failpoint.Hit("pipeline.durable")
		_ = r.cfg.Reader.Source.Durable(ctx, p)
	}
}
