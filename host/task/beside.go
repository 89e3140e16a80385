package task

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/datalink-go/datalink/coordination"
)

// beside shows phase and progress in the store, watches the lease and settles
// predecessors, while the worker is busy with the pipeline.
func (r *Runner) beside(base context.Context) {
	ctx, cancel := context.WithCancel(base)
	defer cancel()
	r.wg.Go(func() {
		<-r.done
		cancel()
	})
	every := r.cfg.MarkEvery
	if t := r.cfg.Session.Lease().Timeout; t > 0 {
		every = min(every, max(t/20, 10*time.Millisecond))
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	guard := Guard{Margin: r.cfg.Margin}
	fenced := false
	marked := r.cfg.Clock.Boot()
	for {
		select {
		case <-r.done:
			return
		case <-r.reload:
			r.write(ctx, false)
			continue
		case <-tick.C:
		}
		r.mu.Lock()
		idem, unsure := r.idem && r.conns != nil, r.unsure
		r.mu.Unlock()
		if guard.Expired(r.cfg.Session.Lease(), r.cfg.Clock) && idem && !fenced {
			fenced = true
			r.emit(Event{Kind: EvDeadline})
		}
		if now := r.cfg.Clock.Boot(); now-marked >= r.cfg.MarkEvery {
			marked = now
			r.write(ctx, true)
			if unsure {
				r.settle(ctx)
			}
		}
	}
}

// write shows the phase or moves the mark. A refusal shows that another execution
// owns the task.
func (r *Runner) write(ctx context.Context, mark bool) {
	r.owner.Lock()
	defer r.owner.Unlock()
	r.mu.Lock()
	st, phase, reason := r.status, r.phase, r.reason
	r.mu.Unlock()
	if r.released || st.ExecutionID == "" || phase.Final() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords) // the owner's lock is held
	defer cancel()
	var err error
	if mark {
		marks := r.tally.marks()
		if len(marks) == 0 || reflect.DeepEqual(marks, r.lastMarks) {
			return // an idle task costs the store nothing
		}
		if err = r.cfg.Session.Mark(ctx, st.Owner(), marks); err == nil {
			r.lastMarks = marks
		}
	} else {
		err = r.cfg.Session.SetState(ctx, st.Owner(), string(phase), reason)
	}
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, coordination.ErrSessionLost):
	case errors.Is(err, coordination.ErrFenced):
		r.emit(Event{Kind: EvFault, Fault: faultOf(err), Cause: coordination.CauseStore})
	default:
		r.cfg.Log.Debug("status could not be shown", "cause", err)
	}
}

func (r *Runner) settle(ctx context.Context) {
	if r.cfg.Audit == nil {
		return
	}
	r.mu.Lock()
	judge, levels := r.unjudged, r.levels
	r.mu.Unlock()
	var left bool
	var err error
	if judge {
		left, err = r.cfg.Audit.Predecessors(ctx, r.current(), levels)
	} else {
		left, err = r.cfg.Audit.Settle(ctx, r.current())
	}
	if err != nil {
		r.cfg.Log.Debug("predecessors could not be judged", "cause", err)
		return
	}
	r.mu.Lock()
	r.unsure, r.unjudged = left, false
	r.mu.Unlock()
}
