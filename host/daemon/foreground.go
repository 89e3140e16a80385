package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/task"
)

// Until says when a run in the foreground ends, beside the end of its source.
type Until struct {
	CaughtUp bool          // when nothing new was read or stored for caughtUp
	After    time.Duration // 0 = no bound
}

const caughtUp = 2 * time.Second

// RunOptions are those of RunTask.
type RunOptions struct {
	TakeOver bool
	Until    Until
	Watch    func(Moment) // called now and then, never concurrently; nil = nobody
}

// Moment is how a run is just now.
type Moment struct {
	Phase   task.Phase
	Reason  string
	Elapsed time.Duration
	Reading Reading
}

// Summary is what a run leaves behind.
type Summary struct {
	Task            string        `json:"task"`
	ExecutionID     string        `json:"executionId"`
	Epoch           uint64        `json:"epoch"`
	State           string        `json:"state"`
	Reason          string        `json:"reason"`
	Position        string        `json:"position"` // of the first writer
	DurationSeconds float64       `json:"durationSeconds"`
	Records         Counts        `json:"records"`
	Tables          []TableCount  `json:"tables"`
	Writers         []WriterState `json:"writers"`
	nothing         bool
}

// WriterState is where a writer is. With several writers it says what each got,
// and so do the tables.
type WriterState struct {
	Name     string    `json:"name"`
	Level    string    `json:"level"`
	Position string    `json:"position"`
	Records  *Outcomes `json:"records,omitempty"`
}

// Began reports whether the run came so far as to move changes.
func (s *Summary) Began() bool { return s.Records.Read > 0 }

// Nothing reports whether the run found nothing to do. Reason says why.
func (s *Summary) Nothing() bool { return s.nothing }

// RunTask runs one task until its source ends, until says so, or ctx ends, which
// drains. The summary is nil where the task was never begun. The definition is
// stored, so that a later run of the same name goes on where this one ended; a
// daemon on the same directory leaves it alone unless it was applied.
func (n *Node) RunTask(ctx context.Context, t *config.Task, o RunOptions) (*Summary, error) {
	if missing := n.plugins.Missing([]*config.Task{t}); len(missing) > 0 {
		return nil, api.As(api.Usage, missing)
	}
	base := context.WithoutCancel(ctx)
	def, err := n.foreground(base, t)
	if err != nil {
		return nil, err
	}
	before, err := n.store.Journal(base, def.UID)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	r, err := n.start(t, def, Options{TakeOver: o.TakeOver, WaitHeld: 30 * time.Second, Once: true})
	if err != nil {
		return nil, err
	}
	interrupted := n.attend(ctx, r, begun, o)
	res := r.result()
	s := n.summary(base, r, res, time.Since(begun))
	if res.Err == nil && !interrupted {
		s.explain(res, o.TakeOver || len(newestMarks(before)) > 0)
	}
	switch {
	case res.Err == nil && interrupted && res.Outcome.Killed:
		return s, api.Errorf(api.Interrupted, "interrupted before all was written: %s; the next run goes on where the target is", res.Outcome.Reason)
	case res.Err == nil && interrupted:
		return s, api.Errorf(api.Interrupted, "interrupted: what was read is written, the position is saved")
	case interrupted && api.KindOf(res.Err) == api.Failed:
		return s, api.As(api.Interrupted, fmt.Errorf("interrupted before all was written: %w", unkind(res.Err)))
	}
	return s, res.Err
}

// unkind takes the kind off, so that another can be given.
func unkind(err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// foreground stores the definition; a new one is not wanted by a daemon.
func (n *Node) foreground(ctx context.Context, t *config.Task) (coordination.Definition, error) {
	if _, err := n.store.Task(ctx, t.Name); errors.Is(err, coordination.ErrNotFound) {
		return n.store.CreateTask(ctx, coordination.Definition{Name: t.Name, Spec: t.Spec, Group: t.Group, Desired: coordination.Paused})
	}
	_, d, err := n.define(ctx, t)
	return d, err
}

// attend waits for the end of the run and reports whether it was interrupted.
func (n *Node) attend(ctx context.Context, r *run, begun time.Time, o RunOptions) (interrupted bool) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	done := ctx.Done()
	var over <-chan time.Time
	if o.Until.After > 0 {
		t := time.NewTimer(o.Until.After)
		defer t.Stop()
		over = t.C
	}
	stopped := false
	stop := func(reason string) {
		if !stopped {
			stopped = true
			r.stop(reason)
		}
	}
	for {
		select {
		case <-r.done:
			return interrupted
		case <-done:
			interrupted, done = true, nil
			stop("interrupted")
		case <-over:
			stop(fmt.Sprintf("the time given, %s, is over", o.Until.After))
		case <-tick.C:
		}
		r.mu.Lock()
		st := r.state
		r.mu.Unlock()
		m := Moment{Phase: st.Phase, Reason: st.Reason, Elapsed: time.Since(begun), Reading: r.meter.Reading()}
		if o.Watch != nil {
			o.Watch(m)
		}
		wait := caughtUp
		if m.Reading.Counts.Read == 0 { // a snapshot may be about to begin
			wait = 2 * caughtUp
		}
		if o.Until.CaughtUp && st.Phase == task.Running && m.Reading.Idle >= wait && m.Reading.Lag == 0 {
			stop("caught up with the source")
		}
	}
}

func (n *Node) summary(ctx context.Context, r *run, res Result, took time.Duration) *Summary {
	out := res.Outcome
	s := &Summary{
		Task: r.task.Name, ExecutionID: out.ExecutionID, Epoch: out.Epoch, State: string(out.Phase), Reason: out.Reason,
		DurationSeconds: took.Seconds(), Records: res.Reading.Counts, Tables: res.Reading.Tables, Writers: []WriterState{},
	}
	if s.Tables == nil {
		s.Tables = []TableCount{}
	}
	at := map[string]string{}
	if journal, err := n.store.Journal(ctx, r.def.UID); err == nil {
		for _, m := range newestMarks(journal) {
			if _, have := at[m.Writer]; !have {
				at[m.Writer] = printed(m.Position)
			}
		}
	}
	if len(r.task.Writers) == 1 {
		for i := range s.Tables {
			s.Tables[i].Writer = ""
		}
	}
	for _, w := range r.task.Writers {
		state := WriterState{Name: w.Name, Level: res.Levels[w.Name], Position: at[w.Name]}
		if len(r.task.Writers) > 1 {
			got := res.Reading.Writers[w.Name]
			state.Records = &got
		}
		s.Writers = append(s.Writers, state)
		if s.Position == "" {
			s.Position = at[w.Name]
		}
	}
	return s
}

// explain says why nothing was written, where that is so. Resumed: an earlier run
// may have stored progress.
func (s *Summary) explain(res Result, resumed bool) {
	c := s.Records
	if res.Outcome.Killed || res.Outcome.Phase != task.Ended || c.Written > 0 || c.DeadLettered > 0 {
		return
	}
	s.nothing = true
	at := ""
	if s.Position != "" {
		at = " at " + s.Position
	}
	switch {
	case c.Filtered > 0 && c.Skipped == 0:
		s.Reason += fmt.Sprintf("%s; all %d changes read were filtered out", at, c.Read)
	case c.Skipped > 0:
		s.Reason += fmt.Sprintf("; all %d changes read were written by an earlier run", c.Skipped)
	case resumed && at != "":
		s.Reason += at + ", up to where an earlier run has written"
	default:
		s.Reason += at + "; it holds no change of the tables that are read"
		if p := res.Task.Sources(); len(p) > 0 {
			s.Reason += " (" + strings.Join(p, ", ") + ")"
		}
	}
}
