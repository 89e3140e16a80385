package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/embedded"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// rig is an embedded store with one task and fakes of all else.
type rig struct {
	t       *testing.T
	store   *embedded.Store
	session coordination.Session
	task    coordination.Definition
	cfg     Config
	writers []*fakeSink
	source  *fakeSource
	level   manifest.Level

	mu      sync.Mutex
	log     []string
	phases  []Phase
	starts  int
	failing []error                                                                 // of the next starts
	pipe    func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) // after the reader opened
	kill    chan struct{}
	deaf    bool // Close ends only with its context or a kill
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s, err := embedded.Open(t.Context(), embedded.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	g := &rig{t: t, store: s, level: manifest.LevelTransactional, source: &fakeSource{}, kill: make(chan struct{})}
	g.pipe = func(context.Context, pipeline.Config) (pipeline.Result, error) {
		return pipeline.Result{Ended: true}, nil
	}
	if g.task, err = s.CreateTask(t.Context(), coordination.Definition{Name: "orders", Desired: coordination.Running}); err != nil {
		t.Fatal(err)
	}
	g.session = g.join("w1", coordination.Place{})
	g.writers = []*fakeSink{{rig: g, name: "a"}, {rig: g, name: "b"}}
	g.cfg = Config{
		Task: "orders", Store: s, Session: g.session, Clock: bubbleClock{}, Launcher: g, Run: g.run, Grace: 10 * time.Second,
		Audit: audit.New(audit.Config{Store: s}), Limits: Limits{Tries: 4}, Backoff: Backoff{Min: time.Second, Rand: func() float64 { return 0 }},
		OnState: func(s State) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if n := len(g.phases); n == 0 || g.phases[n-1] != s.Phase {
				g.phases = append(g.phases, s.Phase)
			}
		},
	}
	return g
}

func (g *rig) join(id string, p coordination.Place) coordination.Session {
	g.t.Helper()
	x, err := g.store.Join(g.t.Context(), coordination.Worker{ID: id, Place: p})
	if err != nil {
		g.t.Fatal(err)
	}
	return x
}

func (g *rig) note(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log = append(g.log, fmt.Sprintf(format, args...))
}

func (g *rig) Start(ctx context.Context, ex sdk.Execution) (Connectors, error) {
	g.mu.Lock()
	g.starts++
	var err error
	if len(g.failing) > 0 {
		err, g.failing = g.failing[0], g.failing[1:]
	}
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	g.note("start")
	return g, ctx.Err()
}

func (g *rig) Pipeline() pipeline.Config {
	cfg := pipeline.Config{Reader: pipeline.ReaderConfig{Source: g.source}}
	for _, w := range g.writers {
		cfg.Writers = append(cfg.Writers, pipeline.WriterConfig{Name: w.name, Sink: w, Stores: g.level == manifest.LevelTransactional})
	}
	return cfg
}

func (g *rig) Level(string) manifest.Level { return g.level }

func (g *rig) Close(ctx context.Context) error {
	if g.deaf {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.kill:
		}
	}
	g.note("close")
	return nil
}

func (g *rig) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.kill:
	default:
		g.log = append(g.log, "kill")
		close(g.kill)
	}
}

func (g *rig) run(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) {
	if _, err := cfg.Reader.Source.Open(ctx, &wire.OpenRequest{}); err != nil {
		return pipeline.Result{}, err
	}
	g.note("run epoch %d", cfg.Execution.Epoch)
	return g.pipe(ctx, cfg)
}

func (g *rig) runner() *Runner {
	g.t.Helper()
	r, err := NewRunner(g.cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

func (g *rig) journal() []string {
	g.t.Helper()
	j, err := g.store.Journal(context.Background(), g.task.UID)
	if err != nil {
		g.t.Fatal(err)
	}
	var out []string
	for _, e := range j {
		out = append(out, string(e.Kind))
	}
	return out
}

func (g *rig) free() {
	g.t.Helper()
	if st, err := g.store.Status(context.Background(), "orders"); !errors.Is(err, coordination.ErrNotFound) {
		g.t.Errorf("status after the end: got %+v, %v, want none", st, err)
	}
}

func (g *rig) overlaps() []coordination.Overlap {
	g.t.Helper()
	o, err := g.store.Overlaps(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	return o
}

type fakeSink struct {
	rig   *rig
	name  string
	mu    sync.Mutex
	held  sdk.Claimant
	point sdk.Position
}

// Claim refuses like a transactional target.
func (s *fakeSink) Claim(_ context.Context, ex sdk.Execution) (*sdk.Claimed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rig.note("claim %s epoch %d", s.name, ex.Epoch)
	foreign := s.held.StoreUID != "" && (s.held.StoreUID != ex.StoreUID || s.held.TaskUID != ex.TaskUID)
	held := s.held
	switch {
	case foreign && !ex.TakeOver:
		f := sdk.Faultf(sdk.CodeForeignClaim, "the target holds progress of store %s", held.StoreUID)
		f.Claimant = &held
		return nil, f
	case ex.Epoch < held.Epoch || ex.Epoch == held.Epoch && ex.ID != held.Execution:
		f := sdk.Faultf(sdk.CodeFenced, "the target was claimed by execution %s with epoch %d", held.Execution, held.Epoch)
		f.Claimant = &held
		return nil, f
	}
	s.held = sdk.Claimant{Execution: ex.ID, Epoch: ex.Epoch, StoreUID: ex.StoreUID, TaskUID: ex.TaskUID}
	return &sdk.Claimed{Points: []sdk.Point{{Lane: 0, Position: s.point}}}, nil
}

func (s *fakeSink) Write(context.Context) (pipeline.SinkStream, error) {
	return nil, errors.New("not used")
}

type fakeSource struct {
	open error
}

func (s *fakeSource) ParsePosition(text string) (sdk.Position, error) {
	return sdk.Position{Format: "fake", Source: []byte(text)}, nil
}
func (s *fakeSource) FormatPosition(p sdk.Position) (string, error) { return string(p.Source), nil }
func (s *fakeSource) ComparePositions(a, b sdk.Position) (sdk.Order, error) {
	return sdk.Equal, nil
}

// IntersectPositions knows only positions whose text begins with one letter.
func (s *fakeSource) IntersectPositions(a, b sdk.Position) (sdk.Position, error) {
	if a.Source[0] != b.Source[0] {
		return sdk.Position{}, sdk.Faultf(sdk.CodeInvalidPosition, "different sources")
	}
	return a, nil
}

func (s *fakeSource) UpgradePosition(p sdk.Position) (sdk.Position, error) {
	if p.Format != "fake" {
		return p, sdk.Faultf(sdk.CodeInvalidPosition, "format %q, expected %q", p.Format, "fake")
	}
	return p, nil
}

func (s *fakeSource) Open(context.Context, *wire.OpenRequest) (pipeline.SourceStream, error) {
	return nil, s.open
}
func (s *fakeSource) Durable(context.Context, sdk.Position) error { return nil }

func TestRunToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.pipe = func(_ context.Context, cfg pipeline.Config) (pipeline.Result, error) {
			cfg.Observer.Read(2, 100, sdk.Position{Source: []byte("s2")}, 0)
			cfg.Observer.Acked("a", []pipeline.Count{{Table: "shop.orders", Inserted: 2}}, 0, sdk.Position{Source: []byte("s2")})
			synctest.Wait()
			time.Sleep(6 * time.Second) // the mark moves
			return pipeline.Result{Ended: true}, nil
		}
		out := g.runner().Run(t.Context())
		if out.Phase != Ended || out.Epoch != 1 || out.Reason != "the source has ended" {
			t.Fatalf("outcome: got %+v", out)
		}
		if id, err := uuid.Parse(out.ExecutionID); err != nil || id.Version() != 7 {
			t.Errorf("executionId: got %s, want a UUIDv7", out.ExecutionID)
		}
		want := []Phase{Waiting, Taking, Starting, Claiming, Opening, Running, Closing, Ended}
		if d := cmp.Diff(want, g.phases); d != "" {
			t.Errorf("phases (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]string{"start", "claim a epoch 1", "claim b epoch 1", "run epoch 1", "close"}, g.log); d != "" {
			t.Errorf("calls (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]string{"started", "mark", "ended"}, g.journal()); d != "" {
			t.Errorf("journal (-want +got):\n%s", d)
		}
		j, _ := g.store.Journal(t.Context(), g.task.UID)
		if e := j[2]; e.Reason != "ended: the source has ended" || len(e.Positions) != 1 || e.Positions[0].Position.Text != "s2" {
			t.Errorf("end: got %+v", e)
		}
		g.free()
	})
}

func TestFencedWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.pipe = func(_ context.Context, cfg pipeline.Config) (pipeline.Result, error) {
			cfg.Observer.Acked("a", []pipeline.Count{{Table: "shop.orders"}}, 0, sdk.Position{Source: []byte("s2")})
			cfg.Observer.Read(1, 1, sdk.Position{Source: []byte("s3")}, 0)
			f := sdk.Faultf(sdk.CodeFenced, "batch 7: execution x claimed the target")
			f.Claimant = &sdk.Claimant{Execution: "x", Epoch: 8, StoreUID: "other", TaskUID: "t2"}
			return pipeline.Result{}, fmt.Errorf("writer a: %w", f)
		}
		out := g.runner().Run(t.Context())
		if out.Phase != Fenced || !errors.Is(out.Fault, sdk.ErrFenced) {
			t.Fatalf("outcome: got %+v, want fenced", out)
		}
		o := g.overlaps()
		if len(o) != 1 {
			t.Fatalf("overlaps: got %d, want 1", len(o))
		}
		x := o[0]
		if x.Cause != coordination.CauseFence || !x.Certain || x.Late.ExecutionID != out.ExecutionID || x.Owner.ExecutionID != "x" ||
			x.Owner.Epoch != 8 || x.Owner.StoreUID != "other" || x.Verdict != coordination.Harmless || x.IsOpen() {
			t.Errorf("overlap: got %+v", x)
		}
		if !slices.Equal(x.Tables, []string{"shop.orders"}) || len(x.Writers) != 2 || x.Writers[0].Written != 1 ||
			x.Writers[0].From.Text != "s2" || x.Writers[0].To.Text != "s3" || !strings.Contains(x.Detail, "batch 7") {
			t.Errorf("overlap: got %+v, want the tables, counts and window", x)
		}
		if d := cmp.Diff([]string{"started", "ended"}, g.journal()); d != "" {
			t.Errorf("journal (-want +got):\n%s", d)
		}
		g.free()
	})
}

// The store was put back: a target holds a higher epoch, of this store and task.
func TestRestoredStoreRaises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.writers[1].held = sdk.Claimant{Execution: "x", Epoch: 9, StoreUID: g.store.UID(), TaskUID: g.task.UID}
		out := g.runner().Run(t.Context())
		if out.Phase != Ended || out.Epoch != 10 {
			t.Fatalf("outcome: got %+v, want ended with epoch 10", out)
		}
		want := []string{"start", "claim a epoch 1", "claim b epoch 1", "claim a epoch 10", "claim b epoch 10", "run epoch 10", "close"}
		if d := cmp.Diff(want, g.log); d != "" {
			t.Errorf("calls (-want +got):\n%s", d)
		}
		if len(g.overlaps()) != 0 {
			t.Errorf("overlaps: got %+v, want none", g.overlaps())
		}
	})
}

// The higher epoch is that of an heir, whose status node is there: the raise is
// refused and the late one ends without a write.
func TestHeirIsNotOutbid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		heir := uuid.Must(uuid.NewV7()).String()
		g.writers[0].held = sdk.Claimant{Execution: heir, Epoch: 9, StoreUID: g.store.UID(), TaskUID: g.task.UID}
		claims := 0
		g.cfg.Launcher = launch(func(ctx context.Context, ex sdk.Execution) (Connectors, error) {
			if claims++; claims == 1 { // it stalls before the claim: its node goes, the heir takes the task
				if err := g.session.Release(ctx, coordination.Owner{TaskUID: ex.TaskUID, ExecutionID: ex.ID}); err != nil {
					t.Error(err)
				}
				if _, err := g.join("w2", coordination.Place{}).Take(ctx, coordination.Take{Task: "orders", ExecutionID: heir}); err != nil {
					t.Error(err)
				}
			}
			return g.Start(ctx, ex)
		})
		out := g.runner().Run(t.Context())
		if out.Phase != Fenced {
			t.Fatalf("outcome: got %+v, want fenced", out)
		}
		for _, l := range g.log {
			if strings.HasPrefix(l, "run") {
				t.Errorf("the late execution ran its pipeline: %q", g.log)
			}
		}
		causes := map[coordination.Cause]bool{}
		for _, o := range g.overlaps() {
			causes[o.Cause] = true
			if o.Owner.ExecutionID != heir || o.Owner.Worker != "w2" {
				t.Errorf("overlap: got %+v, want the heir %s of w2 as owner", o, heir)
			}
		}
		if !causes[coordination.CauseStore] || !causes[coordination.CauseStatus] {
			t.Errorf("causes: got %v, want store and status", causes)
		}
		if st, err := g.store.Status(t.Context(), "orders"); err != nil || st.ExecutionID != heir {
			t.Errorf("status: got %+v, %v, want the heir's", st, err)
		}
	})
}

type launch func(ctx context.Context, ex sdk.Execution) (Connectors, error)

func (f launch) Start(ctx context.Context, ex sdk.Execution) (Connectors, error) { return f(ctx, ex) }

func TestForeignClaim(t *testing.T) {
	for _, takeOver := range []bool{false, true} {
		t.Run(fmt.Sprintf("take-over %v", takeOver), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t)
				g.cfg.TakeOver = takeOver
				g.writers[0].held = sdk.Claimant{Execution: "x", Epoch: 9, StoreUID: "other", TaskUID: "t2"}
				out := g.runner().Run(t.Context())
				want := Failed
				if takeOver {
					want = Ended
				}
				if out.Phase != want || !takeOver && !errors.Is(out.Fault, sdk.ErrForeignClaim) {
					t.Fatalf("outcome: got %+v, want %s", out, want)
				}
				g.free()
			})
		})
	}
}

func TestPositionErrorsAreDistinct(t *testing.T) {
	pos := func(format, s string) sdk.Position { return sdk.Position{Format: format, Source: []byte(s)} }
	for name, tt := range map[string]struct {
		a, b sdk.Position
		open error
		code sdk.Code
		text string
	}{
		"fine":         {a: pos("fake", "s1"), b: pos("fake", "s2")},
		"other reader": {a: pos("fake", "s1"), b: pos("alien", "s2"), code: sdk.CodeInvalidPosition, text: "writer b, lane 0 is no position of this reader"},
		"incomparable": {a: pos("fake", "s1"), b: pos("fake", "t1"), code: sdk.CodeInvalidPosition, text: "writer a, lane 0 is at s1, writer b, lane 0 at t1"},
		"purged":       {open: sdk.ErrPositionPurged, code: sdk.CodePositionPurged},
		"future":       {open: sdk.ErrPositionUnknown, code: sdk.CodePositionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t)
				g.writers[0].point, g.writers[1].point, g.source.open = tt.a, tt.b, tt.open
				out := g.runner().Run(t.Context())
				if tt.code == "" {
					if out.Phase != Ended {
						t.Fatalf("outcome: got %+v", out)
					}
					return
				}
				if out.Phase != Failed || out.Fault.Code != tt.code || !strings.Contains(out.Fault.Message, tt.text) {
					t.Fatalf("outcome: got %s, fault %+v, want failed with %s and %q", out.Phase, out.Fault, tt.code, tt.text)
				}
				if g.starts != 1 {
					t.Errorf("starts: got %d, want 1: this is not tried again", g.starts)
				}
			})
		})
	}
}

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
		ended := make(chan struct{})
		g.pipe = func(ctx context.Context, cfg pipeline.Config) (pipeline.Result, error) {
			<-ctx.Done()
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
