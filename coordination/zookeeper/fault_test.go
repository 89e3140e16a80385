package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/zookeeper"
	"github.com/datalink-go/datalink/examples/stack"
)

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func place(lock, process string) coordination.Place {
	return coordination.Place{Host: "h", BootID: "b", DataDir: "/d/" + lock, LockID: lock, Held: true, Process: process}
}

// until polls a state.
func until(t testing.TB, what string, bound time.Duration, f func() bool) {
	t.Helper()
	end := time.Now().Add(bound)
	for !f() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, bound)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func ok(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: got %v, want no error", what, err)
	}
}

// pair is a store whose worker goes through a proxy and another that does not.
type pair struct {
	t        *testing.T
	e        *stack.Ensemble
	p        *proxy
	cut      *zookeeper.Store // through the proxy
	direct   *zookeeper.Store
	x, other coordination.Session
	task     coordination.Definition
}

func newPair(t *testing.T, e *stack.Ensemble, change func(*zookeeper.Config)) *pair {
	t.Helper()
	r := &pair{t: t, e: e, p: newProxy(t, e.Servers[0].Addr())}
	cfg := config(e)
	cfg.Timeout = 2 * time.Second
	r.direct = open(t, t.Context(), cfg)
	through := cfg
	through.Servers = []string{r.p.addr()}
	if change != nil {
		change(&through)
	}
	r.cut = open(t, t.Context(), through)
	var err error
	r.x, err = r.cut.Join(t.Context(), coordination.Worker{ID: "a", Place: place("a", "1@1")})
	ok(t, "join", err)
	r.other, err = r.direct.Join(t.Context(), coordination.Worker{ID: "b", Place: place("b", "2@2")})
	ok(t, "join", err)
	r.task, err = r.direct.CreateTask(t.Context(), coordination.Definition{Name: "orders", Desired: coordination.Running})
	ok(t, "create", err)
	return r
}

func (r *pair) take(x coordination.Session) coordination.Status {
	r.t.Helper()
	st, err := x.Take(r.t.Context(), coordination.Take{Task: "orders", ExecutionID: newID()})
	ok(r.t, "take", err)
	return st
}

// heir waits until the task can be taken by the other worker.
func (r *pair) heir(bound time.Duration) (st coordination.Status, at time.Duration) {
	r.t.Helper()
	until(r.t, "the task can be taken", bound, func() bool {
		var err error
		st, err = r.other.Take(r.t.Context(), coordination.Take{Task: "orders", ExecutionID: newID()})
		if err != nil && !errors.Is(err, coordination.ErrHeld) {
			r.t.Fatal(err)
		}
		at = coordination.System{}.Boot()
		return err == nil
	})
	return st, at
}

func step(n byte) coordination.Step {
	return coordination.Step{Writer: "w", Points: []coordination.Point{{BatchNo: uint64(n)}}}
}

// A worker that is cut off knows when its session may end before anybody else can
// own its task, and is refused when it is back (B125, B127, B129, B130).
func TestCutOffWorker(t *testing.T) {
	e := servers(t, 1)
	t.Run("for longer than the session time-out", func(t *testing.T) {
		r := newPair(t, e, nil)
		st := r.take(r.x)
		r.p.cut.Store(true)
		_, taken := r.heir(10 * time.Second)
		l := r.x.Lease()
		if l.Timeout != 2*time.Second || l.Deadline() > taken {
			t.Errorf("lease: deadline %s of %+v, the heir had the task at %s: want the deadline before it", l.Deadline(), l, taken)
		}
		select {
		case <-r.x.Lost():
			t.Error("told that the session ended while nothing can be known")
		default:
		}
		r.p.cut.Store(false)
		r.p.drop()
		until(t, "the session is known to be lost", 10*time.Second, func() bool {
			select {
			case <-r.x.Lost():
				return true
			default:
				return false
			}
		})
		for name, f := range map[string]func() error{
			"save":  func() error { return r.x.Save(t.Context(), st.Owner(), step(9)) },
			"state": func() error { return r.x.SetState(t.Context(), st.Owner(), "late", "") },
		} {
			if err := f(); !errors.Is(err, coordination.ErrSessionLost) {
				t.Errorf("%s after it: got %v, want ErrSessionLost", name, err)
			}
		}
		var fenced *coordination.FencedError
		if err := r.x.Release(t.Context(), st.Owner()); !errors.As(err, &fenced) || fenced.Found.Worker != "b" {
			t.Errorf("release: got %v, want a FencedError that names b", err)
		}
		ok(t, "the fenced one reports", r.cut.Append(t.Context(), coordination.Entry{Kind: coordination.EntryEnded, TaskUID: r.task.UID, ExecutionID: st.ExecutionID}))
	})
	t.Run("for less", func(t *testing.T) {
		r := newPair(t, e, nil)
		st := r.take(r.x)
		r.p.cut.Store(true)
		before := r.x.Lease().Sent
		until(t, "a moment passes", 5*time.Second, func() bool { return coordination.System{}.Boot()-before > 700*time.Millisecond })
		r.p.cut.Store(false)
		r.p.drop()
		ok(t, "save after it", r.x.Save(t.Context(), st.Owner(), step(1)))
		if r.x.Lease().Sent <= before {
			t.Error("the lease does not move")
		}
		if _, err := r.other.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: newID()}); !errors.Is(err, coordination.ErrHeld) {
			t.Errorf("take by another: got %v, want ErrHeld", err)
		}
	})
	t.Run("calls end with their context", func(t *testing.T) {
		r := newPair(t, e, nil)
		st := r.take(r.x)
		r.p.cut.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		for name, f := range map[string]func() error{
			"save":    func() error { return r.x.Save(ctx, st.Owner(), step(1)) },
			"tasks":   func() error { _, err := r.cut.Tasks(ctx); return err },
			"release": func() error { return r.x.Release(ctx, st.Owner()) },
		} {
			began := time.Now()
			if err := f(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
				t.Errorf("%s: got %v after %s, want the context's end", name, err, time.Since(began))
			}
		}
	})
}

// Each call whose answer is lost takes effect once.
func TestLostAnswers(t *testing.T) {
	r := newPair(t, servers(t, 1), nil)
	ctx := t.Context()
	var st coordination.Status
	id := newID()
	for _, c := range []struct {
		name string
		call func() error
		want func() bool
	}{
		{"create task", func() error {
			_, err := r.cut.CreateTask(ctx, coordination.Definition{Name: "other", Desired: coordination.Paused})
			return err
		}, func() bool { all, _ := r.direct.Tasks(ctx); return len(all) == 2 }},
		{"change task", func() error {
			_, err := r.cut.UpdateTask(ctx, coordination.Definition{Name: "other", Version: 1, Desired: coordination.Running})
			return err
		}, func() bool {
			d, _ := r.direct.Task(ctx, "other")
			return d.Version == 2 && d.Desired == coordination.Running
		}},
		{"delete task", func() error { return r.cut.DeleteTask(ctx, "other", 2) }, func() bool { all, _ := r.direct.Tasks(ctx); return len(all) == 1 }},
		{"take", func() (err error) {
			st, err = r.x.Take(ctx, coordination.Take{Task: "orders", ExecutionID: id})
			return err
		}, func() bool {
			j, _ := r.direct.Journal(ctx, r.task.UID)
			got, _ := r.direct.Status(ctx, "orders")
			return len(j) == 1 && j[0].Epoch == 1 && got.ExecutionID == id && got.Epoch == 1
		}},
		{"first save", func() error { return r.x.Save(ctx, st.Owner(), step(1)) }, func() bool { return r.batch() == 1 }},
		{"save", func() error { return r.x.Save(ctx, st.Owner(), step(2)) }, func() bool { return r.batch() == 2 }},
		{"save of a letter", func() error {
			return r.x.Save(ctx, st.Owner(), coordination.Step{Writer: "w", SetAside: []coordination.DeadLetter{{Number: 7}}, Items: []coordination.Item{{Key: "k"}}})
		}, func() bool {
			p, _ := r.direct.Progress(ctx, r.task.UID, "w")
			return len(p.DeadLetters) == 1 && len(p.Items) == 1 && p.Points[0].BatchNo == 2
		}},
		{"mark", func() error { return r.x.Mark(ctx, st.Owner(), []coordination.Mark{{Writer: "w"}}) }, func() bool {
			j, _ := r.direct.Journal(ctx, r.task.UID)
			return len(j) == 2 && j[1].Kind == coordination.EntryMark
		}},
		{"state", func() error { return r.x.SetState(ctx, st.Owner(), "running", "") }, func() bool {
			got, _ := r.direct.Status(ctx, "orders")
			return got.State == "running"
		}},
		{"raise", func() (err error) {
			st, err = r.x.Raise(ctx, st.Owner(), 10)
			return err
		}, func() bool {
			got, _ := r.direct.Status(ctx, "orders")
			return got.Epoch == 11 && st.Epoch == 11
		}},
		{"save after it", func() error { return r.x.Save(ctx, st.Owner(), step(3)) }, func() bool { return r.batch() == 3 }},
		{"append", func() error {
			return r.cut.Append(ctx, coordination.Entry{Kind: coordination.EntryEnded, TaskUID: r.task.UID, ExecutionID: id})
		}, func() bool { j, _ := r.direct.Journal(ctx, r.task.UID); return len(j) == 4 }},
		{"overlap", func() error { return r.cut.AddOverlap(ctx, coordination.Overlap{ID: "o"}) }, func() bool { all, _ := r.direct.Overlaps(ctx); return len(all) == 1 }},
		{"resolve", func() error { return r.cut.Resolve(ctx, "o", coordination.Resolution{ID: "r"}) }, func() bool {
			o, _ := r.direct.Overlap(ctx, "o")
			return len(o.Resolutions) == 1
		}},
		{"release", func() error { return r.x.Release(ctx, st.Owner()) }, func() bool {
			_, err := r.direct.Status(ctx, "orders")
			return errors.Is(err, coordination.ErrNotFound)
		}},
		{"join", func() error {
			x, err := r.cut.Join(ctx, coordination.Worker{ID: "c"})
			if err == nil {
				t.Cleanup(func() { x.Close(context.Background()) })
			}
			return err
		}, func() bool { all, _ := r.direct.Workers(ctx); return len(all) == 3 }},
	} {
		lost := make(chan struct{})
		r.p.lose()
		f := r.p.onMulti
		r.p.next(func() { close(lost); f() })
		if err := c.call(); err != nil {
			t.Fatalf("%s: got %v, want it settled", c.name, err)
		}
		select {
		case <-lost:
		default:
			t.Fatalf("%s: no answer was lost: the test shows nothing", c.name)
		}
		if !c.want() {
			t.Fatalf("%s: not as if it had happened once", c.name)
		}
	}
}

func (r *pair) batch() uint64 {
	p, err := r.direct.Progress(r.t.Context(), r.task.UID, "w")
	if err != nil || len(p.Points) != 1 {
		return 0
	}
	return p.Points[0].BatchNo
}

// A take that was given up without an answer leaves nothing behind, unless somebody
// asks for it again.
func TestOrphanOfATake(t *testing.T) {
	e := servers(t, 1)
	abandon := func(r *pair) string {
		t.Helper()
		id := newID()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.p.next(func() { r.p.mute.Store(true) })
		go func() {
			defer cancel()
			until(t, "the node is there", 5*time.Second, func() bool {
				_, err := r.direct.Status(t.Context(), "orders")
				return err == nil
			})
		}()
		if _, err := r.x.Take(ctx, coordination.Take{Task: "orders", ExecutionID: id}); !errors.Is(err, context.Canceled) {
			t.Fatalf("take: got %v, want the context's end", err)
		}
		r.p.drop()
		r.p.mute.Store(false)
		return id
	}
	t.Run("nobody asks", func(t *testing.T) {
		r := newPair(t, e, func(c *zookeeper.Config) { c.OrphanAfter = time.Second })
		abandon(r)
		until(t, "the orphan is deleted", 10*time.Second, func() bool {
			_, err := r.direct.Status(t.Context(), "orders")
			return errors.Is(err, coordination.ErrNotFound)
		})
	})
	t.Run("asked again", func(t *testing.T) {
		r := newPair(t, e, func(c *zookeeper.Config) { c.OrphanAfter = 500 * time.Millisecond })
		id := abandon(r)
		st, err := r.x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: id})
		ok(t, "take again", err)
		late := coordination.System{}.Boot() + 1500*time.Millisecond
		until(t, "a time in which it would be deleted", 5*time.Second, func() bool { return coordination.System{}.Boot() > late })
		ok(t, "save", r.x.Save(t.Context(), st.Owner(), step(1)))
	})
}

func TestNegotiatedTimeout(t *testing.T) {
	e := servers(t, 1) // tickTime 500: 1 s to 10 s
	for _, tt := range []struct{ ask, want time.Duration }{{time.Minute, 10 * time.Second}, {100 * time.Millisecond, time.Second}, {3 * time.Second, 3 * time.Second}} {
		cfg := config(e)
		cfg.Timeout = tt.ask
		s := open(t, t.Context(), cfg)
		x, err := s.Join(t.Context(), coordination.Worker{ID: "w"})
		ok(t, "join", err)
		if got := x.Lease().Timeout; got != tt.want {
			t.Errorf("asked for %s: got %s, want %s (B132)", tt.ask, got, tt.want)
		}
	}
}

// Servers come and go; the session and what it owns stay.
func TestServersGoAway(t *testing.T) {
	e := servers(t, 3)
	cfg := config(e)
	cfg.Timeout = 6 * time.Second
	s := open(t, t.Context(), cfg)
	x, err := s.Join(t.Context(), coordination.Worker{ID: "w", Place: place("w", "1@1")})
	ok(t, "join", err)
	_, err = s.CreateTask(t.Context(), coordination.Definition{Name: "orders", Desired: coordination.Running})
	ok(t, "create", err)
	st, err := x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: newID()})
	ok(t, "take", err)
	n := byte(0)
	goesOn := func(what string) {
		t.Helper()
		n++
		ok(t, "save, "+what, x.Save(t.Context(), st.Owner(), step(n)))
		if p, err := s.Progress(t.Context(), st.TaskUID, "w"); err != nil || p.Points[0].BatchNo != uint64(n) {
			t.Fatalf("%s: got %+v, %v", what, p, err)
		}
		got, err := s.Status(t.Context(), "orders")
		if err != nil || got.ExecutionID != st.ExecutionID || got.Session != x.ID() {
			t.Fatalf("%s: status: got %+v, %v, want the same execution in the same session", what, got, err)
		}
	}
	goesOn("before")
	follower := e.Follower()
	follower.Kill()
	goesOn("a follower was killed")
	follower.Restart()
	e.Await()
	leader := e.Leader()
	leader.Kill()
	goesOn("the leader was killed")
	leader.Restart()
	e.Await()
	for _, srv := range e.Servers {
		srv.Kill()
	}
	for _, srv := range e.Servers {
		srv.Restart()
	}
	e.Await()
	goesOn("the whole ensemble was killed and is back")
}

// Servers that were put back to an older copy do not take the session back; it is
// learned by another way, and the store goes on with them.
func TestServersPutBack(t *testing.T) {
	e := servers(t, 1)
	cfg := config(e)
	cfg.Timeout = 2 * time.Second
	s := open(t, t.Context(), cfg)
	d, err := s.CreateTask(t.Context(), coordination.Definition{Name: "orders", Desired: coordination.Running})
	ok(t, "create", err)
	back := snapshot(t, e)
	x, err := s.Join(t.Context(), coordination.Worker{ID: "w", Place: place("w", "1@1")})
	ok(t, "join", err)
	var st coordination.Status
	for range 3 {
		st, err = x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: newID()})
		ok(t, "take", err)
		ok(t, "release", x.Release(t.Context(), st.Owner()))
	}
	back()
	select {
	case <-x.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("the session is not known to be lost")
	}
	ok(t, "the store is usable", func() error { _, err := s.Tasks(t.Context()); return err }())
	x, err = s.Join(t.Context(), coordination.Worker{ID: "w", Place: place("w", "1@1")})
	ok(t, "join anew", err)
	next, err := x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: newID()})
	ok(t, "take", err)
	if next.Epoch > st.Epoch {
		t.Fatalf("epoch %d after %d: the test shows nothing", next.Epoch, st.Epoch)
	}
	up, err := x.Raise(t.Context(), next.Owner(), st.Epoch)
	if err != nil || up.Epoch <= st.Epoch {
		t.Errorf("raise above %d: got %d, %v", st.Epoch, up.Epoch, err)
	}
	j, err := s.Journal(t.Context(), d.UID)
	if err != nil || !slices.ContainsFunc(j, func(e coordination.Entry) bool { return e.Kind == coordination.EntryRaised }) {
		t.Errorf("journal: got %+v, %v", j, err)
	}
}
