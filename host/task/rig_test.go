package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

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
	open    error
	upgrade error // of the first UpgradePosition
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
	if err := s.upgrade; err != nil {
		s.upgrade = nil
		return p, err
	}
	if p.Format != "fake" {
		return p, sdk.Faultf(sdk.CodeInvalidPosition, "format %q, expected %q", p.Format, "fake")
	}
	return p, nil
}

func (s *fakeSource) Open(context.Context, *wire.OpenRequest) (pipeline.SourceStream, error) {
	return nil, s.open
}
func (s *fakeSource) Durable(context.Context, sdk.Position) error { return nil }
