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
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
)

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

// A reader that dies while it is asked about a position has said nothing of the
// position: the task tries again.
func TestReaderDiesOverAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.writers[0].point = sdk.Position{Format: "fake", Source: []byte("s1")}
		g.source.upgrade = fmt.Errorf("%w: signal: killed", pipeline.ErrDied)
		out := g.runner().Run(t.Context())
		if out.Phase != Ended || g.starts != 2 {
			t.Fatalf("outcome: got %+v after %d starts, want ended after 2", out, g.starts)
		}
	})
}
