package task

import (
	"context"
	"errors"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// do performs a quick effect or hands a slow one to the worker. It runs in the
// loop and never blocks.
func (r *Runner) do(s State, f Effect) {
	switch f.Kind {
	case DoFinish:
	case DoShow:
		select {
		case r.reload <- struct{}{}:
		default:
		}
	case DoStop:
		failpoint.Hit("task.stopping")
		r.mu.Lock()
		close(r.stop)
		r.mu.Unlock()
	case DoAbort:
		r.mu.Lock()
		r.abort()
		r.mu.Unlock()
	case DoKill:
		r.mu.Lock()
		r.abort()
		r.killed = true
		c := r.conns
		r.mu.Unlock()
		if c != nil {
			r.wg.Go(c.Kill)
		}
	case DoGrace:
		if r.grace != nil {
			r.grace.Stop()
		}
		r.grace = time.AfterFunc(r.cfg.Grace, func() { r.emit(Event{Kind: EvGrace}) })
	case DoTimer:
		if r.timer != nil {
			r.timer.Stop()
		}
		r.timer = time.AfterFunc(r.cfg.Backoff.wait(f.Try), func() { r.emit(Event{Kind: EvTimer}) })
	default:
		r.work <- f // as many as Step can ask for before an answer fit
	}
}

// abort needs r.mu.
func (r *Runner) abort() {
	r.aborted = true
	if r.cancel != nil {
		r.cancel()
	}
}

// worker performs slow effects one after the other.
func (r *Runner) worker(base context.Context) {
	for f := range r.work {
		select {
		case <-r.done:
			if f.Kind != DoOverlap { // what is to be told is told
				continue
			}
		default:
		}
		ctx, cancel := context.WithCancel(base)
		r.mu.Lock()
		switch f.Kind {
		case DoStart, DoClaim, DoRaise, DoRun, DoAudit:
			if r.aborted {
				cancel()
			}
			r.cancel = cancel
		case DoClose:
			r.aborted = false // what follows is not what was aborted
			r.cancel = cancel
			if r.killed {
				cancel()
			}
		case DoLook, DoTake:
			r.cancel = cancel
		default:
			r.cancel = nil // the last words are not to be cut off
		}
		r.mu.Unlock()
		r.slow(ctx, f)
		cancel()
	}
}

// lastWords bounds calls to the store that nothing else ends.
const lastWords = 15 * time.Second

func (r *Runner) slow(ctx context.Context, f Effect) {
	switch f.Kind {
	case DoLook:
		r.look(ctx)
	case DoTake:
		r.take(ctx)
	case DoAudit:
		r.audit(ctx)
	case DoStart:
		r.start(ctx)
	case DoClaim:
		r.claim(ctx)
	case DoRaise:
		r.raise(ctx, f.Epoch)
	case DoRun:
		r.run(ctx)
	case DoClose:
		r.close(ctx)
	default:
		ctx, cancel := context.WithTimeout(ctx, lastWords)
		defer cancel()
		switch f.Kind {
		case DoOverlap:
			r.overlap(ctx, coordination.Cause(f.Text))
		case DoEnd:
			r.end(ctx, f.Text, f.Unclear)
		case DoRelease:
			r.release(ctx)
		}
	}
}

func (r *Runner) fault(f *sdk.Fault, cause coordination.Cause) {
	r.emit(Event{Kind: EvFault, Fault: f, Cause: cause})
}

// storeFault reports an error of the coordination store.
func (r *Runner) storeFault(err error, cause coordination.Cause) {
	if errors.Is(err, coordination.ErrSessionLost) {
		r.emit(Event{Kind: EvLost})
	}
	f := faultOf(err)
	if f.Code != sdk.CodeFenced {
		cause = ""
	}
	r.fault(f, cause)
}

// look waits until nobody has the task.
func (r *Runner) look(ctx context.Context) {
	failpoint.Hit("task.look")
	var late <-chan time.Time
	if r.cfg.WaitHeld > 0 {
		t := time.NewTimer(r.cfg.WaitHeld)
		defer t.Stop()
		late = t.C
	}
	for {
		changed, err := r.cfg.Store.Watch(ctx, r.cfg.Task)
		if err != nil {
			r.storeFault(err, "")
			return
		}
		st, err := r.cfg.Store.Status(ctx, r.cfg.Task)
		switch {
		case errors.Is(err, coordination.ErrNotFound):
			if _, err = r.cfg.Store.Task(ctx, r.cfg.Task); err == nil {
				r.replaces("")
				r.emit(Event{Kind: EvFree})
				return
			}
			r.storeFault(err, "")
			return
		case err != nil:
			r.storeFault(err, "")
			return
		case r.cfg.Session.Worker().Place.Succeeds(st.Place):
			r.cfg.Log.Info("status node of a process that is gone is replaced: this process holds its lock", "execution", st.ExecutionID, "pid", st.PID)
			r.replaces(st.ExecutionID)
			r.emit(Event{Kind: EvFree})
			return
		}
		held := (&coordination.HeldError{Status: st}).Error()
		r.emit(Event{Kind: EvHeld, Text: held})
		select {
		case <-changed:
		case <-late:
			r.fault(sdk.Faultf(sdk.CodeRefused, "%s, after %s of waiting", held, r.cfg.WaitHeld).Suggest("stop it there, or wait longer"), "")
			return
		case <-ctx.Done():
			return
		case <-r.done:
			return
		}
	}
}

func (r *Runner) replaces(execution string) {
	r.mu.Lock()
	r.replace = execution
	r.mu.Unlock()
}

func (r *Runner) take(ctx context.Context) {
	r.mu.Lock()
	replace := r.replace
	r.mu.Unlock()
	failpoint.Hit("task.taking")
	st, err := r.cfg.Session.Take(ctx, coordination.Take{
		Task: r.cfg.Task, Version: r.cfg.Version, ExecutionID: r.id, State: string(Taking), Replace: replace,
	})
	var held *coordination.HeldError
	switch {
	case errors.As(err, &held):
		r.emit(Event{Kind: EvHeld, Text: held.Error()})
	case err != nil:
		r.storeFault(err, "")
	default:
		failpoint.Hit("task.taken")
		r.mu.Lock()
		r.status = st
		r.mu.Unlock()
		r.emit(Event{Kind: EvTaken, Epoch: st.Epoch})
	}
}

// audit closes predecessors. What it cannot do now Settle or a successor does.
func (r *Runner) audit(ctx context.Context) {
	if r.cfg.Audit == nil {
		return
	}
	left, err := r.cfg.Audit.Predecessors(ctx, r.current(), r.levels)
	if err != nil {
		r.cfg.Log.Warn("predecessors could not be judged", "cause", err)
	}
	r.mu.Lock()
	r.unsure, r.unjudged = left || err != nil, err != nil
	r.mu.Unlock()
	failpoint.Hit("task.audited")
}

// overlap records what a fence or the store told.
func (r *Runner) overlap(ctx context.Context, cause coordination.Cause) {
	if r.cfg.Audit == nil {
		return
	}
	r.mu.Lock()
	l := audit.Late{Cause: cause, Self: r.status, Levels: r.levels}
	if r.last != nil {
		l.Detail = r.last.Message
		if c := r.last.Claimant; c != nil {
			l.Other = coordination.Party{ExecutionID: c.Execution, Epoch: c.Epoch, Worker: c.Worker, StoreUID: c.StoreUID, TaskUID: c.TaskUID}
		}
	}
	r.mu.Unlock()
	r.tally.report(&l)
	if err := r.cfg.Audit.Late(ctx, l); err != nil {
		r.cfg.Log.Error("overlap could not be recorded", "cause", err, "overlap", string(cause), "detail", l.Detail)
	}
}

func (r *Runner) end(ctx context.Context, reason string, unclear bool) {
	st := r.current()
	r.mu.Lock()
	unclear = unclear && r.idem
	r.mu.Unlock()
	err := r.cfg.Store.Append(ctx, coordination.Entry{
		Kind: coordination.EntryEnded, Task: st.Task, TaskUID: st.TaskUID, ExecutionID: st.ExecutionID, Epoch: st.Epoch,
		At: r.cfg.Clock.Now().UTC(), Reason: reason, Positions: r.tally.marks(), Unanswered: unclear,
	})
	if err != nil {
		r.storeFault(err, "")
		return
	}
	failpoint.Hit("task.ended")
	r.emit(Event{Kind: EvWritten})
}

func (r *Runner) release(ctx context.Context) {
	r.owner.Lock()
	r.released = true
	st := r.current()
	err := r.cfg.Session.Release(ctx, st.Owner())
	r.owner.Unlock()
	if err != nil && !errors.Is(err, coordination.ErrSessionLost) {
		r.storeFault(err, "")
		return
	}
	failpoint.Hit("task.released")
	r.emit(Event{Kind: EvReleased})
}
