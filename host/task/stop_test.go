package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
)

func TestRetryWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		away := sdk.Faultf(sdk.CodeUnavailable, "connection refused")
		g.failing = []error{away, away}
		began := time.Now()
		out := g.runner().Run(t.Context())
		if out.Phase != Ended || g.starts != 3 || time.Since(began) != 1500*time.Millisecond {
			t.Fatalf("outcome: got %s after %d starts and %s, want ended after 3 and 1.5s (half of 1 s and 2 s)", out.Phase, g.starts, time.Since(began))
		}
		if d := cmp.Diff([]string{"started", "ended"}, g.journal()); d != "" {
			t.Errorf("journal (-want +got):\n%s", d)
		}
	})
}

func TestGivesUpAfterTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		for range 10 {
			g.failing = append(g.failing, sdk.Faultf(sdk.CodeUnavailable, "connection refused"))
		}
		out := g.runner().Run(t.Context())
		if out.Phase != Failed || g.starts != 4 || !strings.Contains(out.Reason, "4 faults in a row") {
			t.Fatalf("outcome: got %s after %d starts, %q", out.Phase, g.starts, out.Reason)
		}
		g.free()
	})
}

func TestStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.pipe = func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) {
			<-cfg.Stop
			g.note("drain")
			return pipeline.Result{}, ctx.Err()
		}
		r := g.runner()
		done := make(chan Outcome, 1)
		go func() { done <- r.Run(t.Context()) }()
		synctest.Wait()
		if st, err := g.store.Status(t.Context(), "orders"); err != nil || st.State != string(Running) {
			t.Errorf("status shows %q, %v, want running", st.State, err)
		}
		r.Stop(Paused, "paused by the operator")
		out := <-done
		if out.Phase != Paused || g.log[len(g.log)-2] != "drain" || g.log[len(g.log)-1] != "close" {
			t.Fatalf("outcome: got %s, calls %q", out.Phase, g.log)
		}
		g.free()
	})
}

// A pipeline that does not drain and connectors that do not close: both are killed
// when the grace period is over, and the task is released only then.
func TestHardStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.deaf = true
		g.pipe = func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) {
			<-ctx.Done()
			return pipeline.Result{}, ctx.Err()
		}
		r := g.runner()
		done := make(chan Outcome, 1)
		go func() { done <- r.Run(t.Context()) }()
		synctest.Wait()
		began := time.Now()
		r.Stop(Ended, "interrupted")
		time.Sleep(9 * time.Second)
		if _, err := g.store.Status(t.Context(), "orders"); err != nil {
			t.Errorf("status before the kill: got %v, want it there", err)
		}
		out := <-done
		if out.Phase != Ended || !out.Killed || time.Since(began) != 10*time.Second || !slices.Contains(g.log, "kill") {
			t.Fatalf("outcome: got %+v after %s, calls %q, want a kill after 10s", out.State, time.Since(began), g.log)
		}
		g.free()
	})
}

func TestContextKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.pipe = func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) {
			<-ctx.Done()
			return pipeline.Result{}, ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		out := g.runner().Run(ctx)
		if out.Phase != Ended || !out.Killed {
			t.Fatalf("outcome: got %+v", out.State)
		}
		if d := cmp.Diff([]string{"started", "ended"}, g.journal()); d != "" {
			t.Errorf("journal (-want +got):\n%s", d)
		}
		g.free()
	})
}

// A session that ends from outside: everything stops, the report is made, the
// heir's node stays.
func TestSessionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		ended, taken := make(chan struct{}), make(chan struct{})
		g.pipe = func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) {
			<-ctx.Done()
			<-taken // the heir is faster than the stop
			close(ended)
			return pipeline.Result{}, ctx.Err()
		}
		r := g.runner()
		done := make(chan Outcome, 1)
		go func() { done <- r.Run(t.Context()) }()
		synctest.Wait()
		if err := g.store.Expire(t.Context(), g.session.ID()); err != nil {
			t.Fatal(err)
		}
		heir := g.join("w2", coordination.Place{})
		st, err := heir.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: uuid.Must(uuid.NewV7()).String()})
		if err != nil {
			t.Fatal(err)
		}
		close(taken)
		<-ended
		out := <-done
		if out.Phase != Fenced {
			t.Fatalf("outcome: got %+v, want fenced", out.State)
		}
		if d := cmp.Diff([]string{"started", "started", "ended"}, g.journal()); d != "" {
			t.Errorf("journal (-want +got):\n%s", d)
		}
		if o := g.overlaps(); len(o) != 1 || o[0].Cause != coordination.CauseStatus || o[0].Owner.ExecutionID != st.ExecutionID {
			t.Errorf("overlaps: got %+v, want one by the status node", o)
		}
		if now, err := g.store.Status(t.Context(), "orders"); err != nil || now.ExecutionID != st.ExecutionID {
			t.Errorf("status: got %+v, %v, want the heir's", now, err)
		}
	})
}

func TestWaitsForTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		other := g.join("w2", coordination.Place{})
		st, err := other.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: uuid.Must(uuid.NewV7()).String()})
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		was := g.cfg.OnState
		g.cfg.OnState = func(s State) {
			was(s)
			if s.Phase == Waiting && s.Reason != "" {
				reasons = append(reasons, s.Reason)
				time.AfterFunc(time.Minute, func() { _ = other.Release(t.Context(), st.Owner()) })
			}
		}
		out := g.runner().Run(t.Context())
		if out.Phase != Ended || out.Epoch != 2 || len(reasons) != 1 || !strings.Contains(reasons[0], st.ExecutionID) {
			t.Fatalf("outcome: got %+v, reasons %q, want ended after one wait that names %s", out.State, reasons, st.ExecutionID)
		}
	})
}

func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.cfg.WaitHeld = time.Minute
		if _, err := g.join("w2", coordination.Place{}).Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: uuid.Must(uuid.NewV7()).String()}); err != nil {
			t.Fatal(err)
		}
		out := g.runner().Run(t.Context())
		if out.Phase != Failed || out.Fault.Code != sdk.CodeRefused || !strings.Contains(out.Reason, `worker "w2"`) || out.Epoch != 0 {
			t.Fatalf("outcome: got %+v, want failed, naming w2", out.State)
		}
	})
}

// The node of a process that held this process's lock before is replaced, its
// execution closed as lost and proven dead.
func TestReplacesTheDeadOfItsOwnDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.cfg.Audit = audit.New(audit.Config{Store: g.store, TCP: -1})
		gone := g.store.Place()
		gone.Process = "1@1"
		st, err := g.join("w0", gone).Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: uuid.Must(uuid.NewV7()).String()})
		if err != nil {
			t.Fatal(err)
		}
		out := g.runner().Run(t.Context())
		if out.Phase != Ended || out.Epoch != 2 {
			t.Fatalf("outcome: got %+v", out.State)
		}
		j, _ := g.store.Journal(t.Context(), g.task.UID)
		var of []string
		for _, e := range j {
			if e.ExecutionID == st.ExecutionID {
				of = append(of, string(e.Kind))
			}
		}
		if d := cmp.Diff([]string{"started", "lost", "dead"}, of); d != "" {
			t.Errorf("journal of the dead (-want +got):\n%s", d)
		}
		if o := g.overlaps(); len(o) != 0 {
			t.Errorf("overlaps: got %+v, want none: it is proven dead", o)
		}
	})
}

// A lease that is no longer certain stops a task with an idempotent target hard,
// and leaves one with fenced targets alone.
func TestSelfFencing(t *testing.T) {
	for _, level := range []manifest.Level{manifest.LevelIdempotent, manifest.LevelTransactional} {
		t.Run(string(level), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t)
				g.level = level
				began := time.Now()
				g.cfg.Session = leased{g.session, coordination.Lease{Sent: bubbleClock{}.Boot(), Timeout: 30 * time.Second}}
				g.pipe = func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) {
					if cfg.Deadline == nil || cfg.Deadline() != (bubbleClock{}.Boot()+20*time.Second).Microseconds() {
						t.Errorf("deadline for writers: want 20 s from the last answer")
					}
					select {
					case <-ctx.Done():
						return pipeline.Result{}, ctx.Err()
					case <-time.After(time.Hour):
						return pipeline.Result{Ended: true}, nil
					}
				}
				out := g.runner().Run(t.Context())
				took := time.Since(began)
				if level == manifest.LevelTransactional {
					if out.Phase != Ended || took != time.Hour {
						t.Fatalf("outcome: got %+v after %s, want it to go on", out.State, took)
					}
					return
				}
				if out.Phase != Fenced || !out.Killed || took < 19*time.Second || took > 21500*time.Millisecond {
					t.Fatalf("outcome: got %+v after %s, want a kill 20 s after the last answer", out.State, took)
				}
			})
		})
	}
}

type bubbleClock struct{}

func (bubbleClock) Now() time.Time { return time.Now() }
func (bubbleClock) Boot() time.Duration {
	return time.Since(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC))
}

type leased struct {
	coordination.Session
	lease coordination.Lease
}

func (l leased) Lease() coordination.Lease { return l.lease }

// Each acknowledged block resets the count of tries.
func TestProgressResetsTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		runs := 0
		g.pipe = func(_ context.Context, cfg pipeline.Config) (pipeline.Result, error) {
			if runs++; runs == 12 {
				return pipeline.Result{Ended: true}, nil
			}
			cfg.Observer.Acked("a", nil, 0, sdk.Position{Source: []byte("s")})
			return pipeline.Result{}, fmt.Errorf("reader: %w", pipeline.ErrDied)
		}
		if out := g.runner().Run(t.Context()); out.Phase != Ended || runs != 12 {
			t.Fatalf("outcome: got %+v after %d runs", out.State, runs)
		}
	})
}

// flakyAudit cannot judge at first.
type flakyAudit struct {
	*audit.Auditor
	fails int
	calls int
}

func (a *flakyAudit) Predecessors(ctx context.Context, self coordination.Status, writers []audit.Writer) (bool, error) {
	if a.calls++; a.calls <= a.fails {
		return false, errors.New("store does not answer")
	}
	return a.Auditor.Predecessors(ctx, self, writers)
}

// Predecessors that could not be judged at the start are judged later, and settled
// once the TCP time-out has passed.
func TestPredecessorsAreJudgedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		gone := g.store.Place()
		gone.Process = "1@1"
		x := g.join("w0", gone)
		st, err := x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: uuid.Must(uuid.NewV7()).String()})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		flaky := &flakyAudit{Auditor: audit.New(audit.Config{Store: g.store}), fails: 2}
		g.cfg.Audit = flaky
		g.pipe = func(context.Context, pipeline.Config) (pipeline.Result, error) {
			time.Sleep(time.Minute)
			return pipeline.Result{Ended: true}, nil
		}
		if out := g.runner().Run(t.Context()); out.Phase != Ended {
			t.Fatalf("outcome: got %+v", out.State)
		}
		j, err := g.store.Journal(t.Context(), g.task.UID)
		if err != nil {
			t.Fatal(err)
		}
		h := audit.History(j)[0]
		if h.Started.ExecutionID != st.ExecutionID || h.Lost == nil || h.Dead == nil || flaky.calls != 3 {
			t.Fatalf("predecessor: got %+v after %d calls, want it lost and dead after 3", h, flaky.calls)
		}
	})
}
