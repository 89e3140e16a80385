package task

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// execution is what connectors learn of this run.
func (r *Runner) execution(template sdk.Execution) sdk.Execution {
	st := r.current()
	template.Task, template.TaskUID, template.StoreUID = st.Task, st.TaskUID, r.cfg.Store.UID()
	template.ID, template.Epoch = st.ExecutionID, st.Epoch
	template.TakeOver, template.Worker = r.cfg.TakeOver, st.Worker
	return template
}

func (r *Runner) start(ctx context.Context) {
	if err := ctx.Err(); err != nil {
		r.fault(sdk.AsFault(err), "")
		return
	}
	c, err := r.cfg.Launcher.Start(ctx, r.execution(sdk.Execution{}))
	if err != nil {
		r.fault(sdk.AsFault(err), "")
		return
	}
	failpoint.Hit("task.started")
	var levels []audit.Writer
	idem := false
	for _, w := range c.Pipeline().Writers {
		l := c.Level(w.Name)
		levels = append(levels, audit.Writer{Name: w.Name, Level: l})
		idem = idem || l != manifest.LevelTransactional && l != manifest.LevelVersioned
	}
	r.mu.Lock()
	r.conns, r.levels, r.idem, r.claimed = c, levels, idem, nil
	killed := r.aborted
	r.mu.Unlock()
	if killed { // while it was starting: the close ends it
		r.fault(sdk.AsFault(context.Canceled), "")
		return
	}
	r.emit(Event{Kind: EvStarted})
}

// claim claims every writer with the epoch of now.
func (r *Runner) claim(ctx context.Context) {
	cfg := r.conns.Pipeline()
	claimed := map[string]*sdk.Claimed{}
	for _, w := range cfg.Writers {
		failpoint.Hit("task.claiming")
		ex := r.execution(cfg.Execution)
		ex.Writer = w.Name
		c, err := w.Sink.Claim(ctx, ex)
		if err != nil {
			r.claimFault(w.Name, ex, err)
			return
		}
		failpoint.Hit("task.claimed")
		if c == nil {
			c = &sdk.Claimed{}
		}
		claimed[w.Name] = c
	}
	r.mu.Lock()
	r.claimed = claimed
	r.mu.Unlock()
	r.emit(Event{Kind: EvClaimed})
}

// claimFault tells a higher epoch of our own store and task, which is no end in
// itself, from every other refusal.
func (r *Runner) claimFault(writer string, ex sdk.Execution, err error) {
	f := sdk.AsFault(fmt.Errorf("claim for writer %s: %w", writer, err))
	c := f.Claimant
	ours := c != nil && (ex.TakeOver || c.StoreUID == ex.StoreUID && c.TaskUID == ex.TaskUID)
	if f.Code != sdk.CodeFenced || !ours || c.Epoch < ex.Epoch {
		r.fault(f, "")
		return
	}
	r.mu.Lock()
	r.last = f
	r.mu.Unlock()
	r.emit(Event{Kind: EvHigher, Epoch: c.Epoch})
}

func (r *Runner) raise(ctx context.Context, above uint64) {
	r.owner.Lock()
	st := r.current()
	up, err := r.cfg.Session.Raise(ctx, st.Owner(), above)
	if err == nil {
		r.mu.Lock()
		r.status = up
		r.mu.Unlock()
	}
	r.owner.Unlock()
	if err != nil {
		r.storeFault(err, coordination.CauseStore)
		return
	}
	failpoint.Hit("task.raised")
	r.emit(Event{Kind: EvRaised, Epoch: up.Epoch})
}

// points lists the progress that the reader will open at.
func (r *Runner) points(ctx context.Context, cfg *pipeline.Config) ([]*sdk.Point, error) {
	var out []*sdk.Point
	for _, w := range cfg.Writers {
		c := w.Claimed
		if !w.Stores {
			var err error
			if c, err = r.store.Load(ctx, w.Name); err != nil {
				return nil, err
			}
		}
		r.tally.claimed(w.Name, c)
		for i := range c.Points {
			c.Points[i].Writer = w.Name
			if c.Points[i].Lane != sdk.WriterLane {
				out = append(out, &c.Points[i])
			}
		}
	}
	return out, nil
}

func (r *Runner) run(ctx context.Context) {
	cfg := r.conns.Pipeline()
	cfg.Writers = slices.Clone(cfg.Writers)
	cfg.Execution = r.execution(cfg.Execution)
	r.mu.Lock()
	for i := range cfg.Writers {
		cfg.Writers[i].Claimed = r.claimed[cfg.Writers[i].Name]
	}
	r.mu.Unlock()
	src := cfg.Reader.Source
	r.store.upgrade = src.UpgradePosition
	failpoint.Hit("task.opening")
	points, err := r.points(ctx, &cfg)
	if err == nil {
		err = commonPoint(src, points)
	}
	if err != nil {
		r.runFault(err)
		return
	}
	cfg.Progress, cfg.Observer, cfg.Log = r.store, r.tally, r.cfg.Log
	cfg.Stop = r.stop
	if l := r.cfg.Session.Lease(); l.Timeout > 0 {
		cfg.Deadline = func() int64 { return Deadline(r.cfg.Session.Lease(), r.cfg.Margin) }
	}
	opened := false
	watch(&cfg, func() {
		failpoint.Hit("task.opened")
		if !opened { // opens come one at a time
			opened = true
			r.emit(Event{Kind: EvOpened})
		}
	}, r.tally.refuse)
	res, err := r.cfg.Run(ctx, cfg)
	failpoint.Hit("task.drained")
	r.mu.Lock()
	r.result = res
	r.mu.Unlock()
	r.tally.texts(func(p sdk.Position) string {
		text, err := src.FormatPosition(p)
		if err != nil {
			return "" // a reader that died tells no text
		}
		return text
	})
	switch {
	case err != nil:
		r.runFault(err)
	case res.Ended:
		r.emit(Event{Kind: EvEnd})
	default:
		r.emit(Event{Kind: EvDrained})
	}
}

// runFault says what a fault of the pipeline shows.
func (r *Runner) runFault(err error) {
	refused, lost := r.store.found()
	f := sdk.AsFault(err)
	switch {
	case lost && f.Code == sdk.CodeFenced:
		r.emit(Event{Kind: EvLost})
	case refused && f.Code == sdk.CodeFenced:
		r.fault(f, coordination.CauseStore)
	default:
		r.fault(f, "")
	}
}

// close ends the connectors, at the latest by killing them.
func (r *Runner) close(ctx context.Context) {
	r.mu.Lock()
	c := r.conns
	r.mu.Unlock()
	if c != nil {
		if err := c.Close(ctx); err != nil {
			if !errors.Is(err, context.Canceled) {
				r.cfg.Log.Warn("connectors did not close in good order and are killed", "cause", err)
			}
			c.Kill()
		}
	}
	r.mu.Lock()
	r.conns = nil
	r.mu.Unlock()
	failpoint.Hit("task.closed")
	r.emit(Event{Kind: EvClosed})
}
