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
	// lossy runs f while answers get lost, and lets them through once the request
	// has arrived.
	lossy := func(what string, f func() error, arrived func() bool) {
		t.Helper()
		r.p.mute.Store(true)
		done := make(chan error, 1)
		go func() { done <- f() }()
		until(t, what+": the request arrives", 5*time.Second, arrived)
		r.p.mute.Store(false)
		r.p.drop()
		if err := <-done; err != nil {
			t.Errorf("%s: got %v, want it settled", what, err)
		}
	}
	id := newID()
	status := func() *coordination.Status {
		st, err := r.direct.Status(t.Context(), "orders")
		if err != nil {
			return nil
		}
		return &st
	}
	// Reads come first in these calls: answers are lost from the write on.
	onWrite := func(f func() error) func() error { return f }
	var st coordination.Status
	var err error
	ok(t, "warm up", func() error { _, err := r.cut.Task(t.Context(), "orders"); return err }())
	st, err = r.x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: id})
	ok(t, "take", err)
	ok(t, "first save", r.x.Save(t.Context(), st.Owner(), step(1)))
	lossy("save", onWrite(func() error { return r.x.Save(t.Context(), st.Owner(), step(2)) }), func() bool {
		p, _ := r.direct.Progress(t.Context(), r.task.UID, "w")
		return len(p.Points) == 1 && p.Points[0].BatchNo == 2
	})
	lossy("state", func() error { return r.x.SetState(t.Context(), st.Owner(), "running", "") }, func() bool { return status().State == "running" })
	ok(t, "save after it", r.x.Save(t.Context(), st.Owner(), step(3)))
	lossy("append", func() error {
		return r.cut.Append(t.Context(), coordination.Entry{Kind: coordination.EntryLost, TaskUID: r.task.UID, ExecutionID: id})
	}, func() bool {
		j, _ := r.direct.Journal(t.Context(), r.task.UID)
		return len(j) == 2
	})
	if got := status(); got == nil || got.ExecutionID != id || got.Epoch != st.Epoch {
		t.Errorf("status: got %+v, want that of %s", got, id)
	}
}

// The lost answer of a create is settled by who owns the node.
func TestLostAnswerOfATake(t *testing.T) {
	e := servers(t, 1)
	for _, tt := range []struct {
		name string
		call func(r *pair, id string) (epoch uint64, err error)
	}{
		{"take", func(r *pair, id string) (uint64, error) {
			st, err := r.x.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: id})
			return st.Epoch, err
		}},
		{"create task", func(r *pair, _ string) (uint64, error) {
			d, err := r.cut.CreateTask(t.Context(), coordination.Definition{Name: "other", Desired: coordination.Paused})
			return d.Version, err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newPair(t, e, nil)
			id := newID()
			// The connection breaks again and again: at any step of the call.
			stop := make(chan struct{})
			broken := make(chan struct{})
			go func() {
				defer close(broken)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(1+i%7) * time.Millisecond):
						r.p.mute.Store(i%2 == 0)
						if i%6 == 5 {
							r.p.drop()
						}
					}
				}
			}()
			until(t, "something was done", 10*time.Second, func() bool {
				if _, err := r.direct.Task(t.Context(), "other"); err == nil {
					return true
				}
				if _, err := r.direct.Status(t.Context(), "orders"); err == nil {
					return true
				}
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				_ = ctx
				go func() { _, _ = tt.call(r, id) }()
				time.Sleep(200 * time.Millisecond)
				return false
			})
			close(stop)
			<-broken
			r.p.mute.Store(false)
			r.p.drop()
			if tt.name == "create task" {
				all, err := r.direct.Tasks(t.Context())
				if err != nil || len(all) != 2 {
					t.Fatalf("tasks: got %d, %v, want 2", len(all), err)
				}
				return
			}
			epoch, err := tt.call(r, id)
			ok(t, "asked again", err)
			j, err := r.direct.Journal(t.Context(), r.task.UID)
			if err != nil || len(j) != 1 || j[0].Epoch != epoch || epoch != 1 {
				t.Errorf("journal: got %+v, %v, epoch %d, want one start with epoch 1", j, err, epoch)
			}
		})
	}
}

// A take that was given up without an answer leaves nothing behind.
func TestOrphanOfATake(t *testing.T) {
	r := newPair(t, servers(t, 1), func(c *zookeeper.Config) { c.OrphanAfter = time.Second })
	abandon := func() string {
		t.Helper()
		for {
			id := newID()
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				until(t, "the node is there", 5*time.Second, func() bool {
					_, err := r.direct.Status(t.Context(), "orders")
					return err == nil
				})
				cancel()
			}()
			mute := time.AfterFunc(2*time.Millisecond, func() { r.p.mute.Store(true) })
			_, err := r.x.Take(ctx, coordination.Take{Task: "orders", ExecutionID: id})
			mute.Stop()
			r.p.mute.Store(false)
			r.p.drop()
			cancel()
			if err != nil {
				return id
			}
			ok(t, "release", r.x.Release(t.Context(), coordination.Owner{TaskUID: r.task.UID, ExecutionID: id}))
		}
	}
	abandon()
	until(t, "the orphan is deleted", 10*time.Second, func() bool {
		_, err := r.direct.Status(t.Context(), "orders")
		return errors.Is(err, coordination.ErrNotFound)
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
