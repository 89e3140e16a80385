package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/datalink-go/datalink/sdk"
)

// lateRefusal ends a stream that was closed before records of it were refused:
// nothing is wrong with the writer.
type lateRefusal struct{ *sdk.Fault }

// Unwrap returns the fault.
func (e lateRefusal) Unwrap() error { return e.Fault }

// recover brings a writer back after a stream that failed: a new sink where the
// old one died, a claim, and the place in the window from which to go on.
func (w *writer) recover(ctx context.Context, cause error) error {
	if errors.Is(cause, ErrDied) {
		if err := w.suspect(cause); err != nil {
			return err
		}
	}
	died := errors.Is(cause, ErrDied)
	for {
		var planned lateRefusal
		if errors.As(cause, &planned) {
			w.run.Log.Debug("records were refused after the last block was sent: the rest goes on a new stream", "writer", w.cfg.Name)
		} else {
			w.run.Observer.Restarted(w.cfg.Name, cause)
			w.run.Log.Warn("writer is begun again", "writer", w.cfg.Name, "tries", w.failures+1, "cause", cause)
		}
		wait := w.run.Backoff.wait(w.failures)
		if w.hunt.on() {
			wait = w.run.Backoff.Min / 2
		}
		w.failures++
		if err := w.pause(ctx, wait); err != nil {
			return err
		}
		err := w.reclaim(ctx, died)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errReopen), ctx.Err() != nil:
			return err
		}
		if fatal := w.fatal(err); fatal != nil {
			return fatal
		}
		died = died || errors.Is(err, ErrDied)
		if w.failures >= w.run.Backoff.Attempts {
			return fmt.Errorf("writer %s: %d tries in a row without progress: %w", w.cfg.Name, w.failures, err)
		}
		cause = err
	}
}

// pause waits, and detaches the writer when it has kept the window full for too
// long.
func (w *writer) pause(ctx context.Context, d time.Duration) error {
	until := time.NewTimer(d)
	defer until.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if !w.detached && w.win.fullFor() > w.run.Backoff.Detach && w.win.others() {
			w.detached = true
			w.win.detach(w.acked)
			w.run.Log.Warn("writer is detached: the window is full of blocks that it alone lacks; the reader will be opened again for it",
				"writer", w.cfg.Name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-until.C:
			return nil
		case <-tick.C:
		}
	}
}

func (w *writer) reclaim(ctx context.Context, died bool) error {
	if died && w.cfg.Reopen != nil {
		sink, err := w.cfg.Reopen(ctx)
		if err != nil {
			return err
		}
		w.sink, w.cfg.Sink = sink, sink
	}
	c, err := claim(ctx, w.run, w.cfg)
	if err != nil {
		return err
	}
	if w.detached {
		return errReopen
	}
	return w.resume(c)
}

// resume finds the claimed points in the window. A point that has not moved
// since it was last reported is at the first block that is not acknowledged.
func (w *writer) resume(c *sdk.Claimed) error {
	w.build.claimed(c)
	if len(c.Points) != len(w.points) {
		return errReopen
	}
	skip := make([]place, len(c.Points))
	var behind []int64
	here := place{entry: w.acked}
	if len(w.inflight) > 0 && w.inflight[0].from > 0 {
		// Part of the entry is durable; the claimed position says how much.
		here = place{entry: w.inflight[0].entry.index}
	}
	for i, p := range c.Points {
		at, ok := w.win.locate(p.Position)
		old, known := pointOf(w.points, p.Lane)
		switch {
		case ok && at.before(here), !ok && known && samePosition(p.Position, old.Position):
			// Behind what the sink had acknowledged: nothing of this lane was
			// left to do up to there.
			at = here
		case !ok:
			w.run.Log.Warn("target is at a place that the window does not hold", "writer", w.cfg.Name, "lane", p.Lane,
				"position", describePosition(p.Position))
			return errReopen
		}
		// Where the sink stores nothing it counts anew after each claim.
		if w.cfg.Stores && known && p.BatchNo < old.BatchNo {
			return sdk.Faultf(sdk.CodeTargetWentBack, "writer %s, lane %d: the target is at batch %d after it had stored batch %d",
				w.cfg.Name, p.Lane, p.BatchNo, old.BatchNo).Suggest("restore the target's newest state or start the task anew")
		}
		skip[i] = at
		if !here.before(at) {
			behind = append(behind, int64(p.Lane))
		}
	}
	w.build.skip, w.build.behind, w.build.points, w.build.offset = skip, behind, len(skip), 0
	w.points, w.claimed = c.Points, c
	first := w.acked
	w.inflight, w.records, w.bytes = nil, 0, 0
	w.cursor, w.event = first, 0
	return nil
}

func pointOf(points []sdk.Point, lane int32) (sdk.Point, bool) {
	for _, p := range points {
		if p.Lane == lane {
			return p, true
		}
	}
	return sdk.Point{}, false
}

// claim asks the sink, and where it stores nothing the progress store, for what
// the target holds. There is at least one point.
func claim(ctx context.Context, run *Config, cfg *WriterConfig) (*sdk.Claimed, error) {
	ex := run.Execution
	ex.Writer = cfg.Name
	c, err := cfg.Sink.Claim(ctx, ex)
	if err != nil {
		return nil, err
	}
	return settle(ctx, run, cfg, c)
}

func settle(ctx context.Context, run *Config, cfg *WriterConfig, c *sdk.Claimed) (*sdk.Claimed, error) {
	if !cfg.Stores {
		// Of versions the target's own row is the authority.
		var ceiling uint64
		if c != nil {
			ceiling = c.Ceiling
		}
		var err error
		if c, err = run.Progress.Load(ctx, cfg.Name); err != nil {
			return nil, fmt.Errorf("load progress of writer %s: %w", cfg.Name, err)
		}
		if ceiling > 0 {
			if c == nil {
				c = &sdk.Claimed{}
			}
			c.Ceiling = max(c.Ceiling, ceiling)
		}
	}
	if c == nil {
		c = &sdk.Claimed{}
	}
	out := *c
	out.Points = nil
	for _, p := range c.Points {
		if p.Lane != sdk.WriterLane {
			p.Writer = cfg.Name
			out.Points = append(out.Points, p)
		}
	}
	if len(out.Points) == 0 {
		out.Points = []sdk.Point{{Writer: cfg.Name}}
	}
	return &out, nil
}
