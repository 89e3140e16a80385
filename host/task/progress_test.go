package task

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func owned(t *testing.T) (*rig, *progress) {
	t.Helper()
	g := newRig(t)
	st, err := g.session.Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: uuid.Must(uuid.NewV7()).String()})
	if err != nil {
		t.Fatal(err)
	}
	return g, &progress{store: g.store, session: g.session, status: func() coordination.Status { return st }}
}

func TestProgressRoundTrip(t *testing.T) {
	_, p := owned(t)
	letter := sdk.DeadLetter{
		Number: 3, Table: "shop.orders", Key: []byte{1}, Record: []byte{2, 0xff}, At: time.Unix(1700000000, 0).UTC(),
		Position: sdk.Position{Format: "f", Version: 1, Source: []byte("a"), Ordinal: 2},
		Fault:    sdk.Fault{Code: sdk.CodeUnfit, Message: "too long", Suggestion: "widen"},
	}
	point := sdk.Point{Writer: "w", Lane: 1, BatchNo: 9, Position: sdk.Position{Format: "f", Version: 1, Source: []byte("b"), Ordinal: 4}}
	err := p.Save(t.Context(), "w", &pipeline.Saved{
		Points: []sdk.Point{point}, SetAside: []sdk.DeadLetter{letter, {Number: 4}},
		State: []batch.StateItem{{Key: "k", Version: 2, Value: []byte("v")}, {Key: "gone", Version: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Save(t.Context(), "w", &pipeline.Saved{Dropped: []uint64{4}, State: []batch.StateItem{{Key: "gone", Deleted: true}}}); err != nil {
		t.Fatal(err)
	}
	got, err := p.Load(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	want := &sdk.Claimed{Points: []sdk.Point{point}, State: []batch.StateItem{{Key: "k", Version: 2, Value: []byte("v")}}, DeadLetters: []sdk.DeadLetter{letter}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("progress (-want +got):\n%s", d)
	}
}

// The store is asked for a ceiling once in 30 s of versions, and a later execution
// finds all that was reserved.
func TestReserve(t *testing.T) {
	_, p := owned(t)
	now := uint64(1_700_000_000_000_000)
	first, err := p.Reserve(t.Context(), "w", now)
	if err != nil || first != now+30_000_000 {
		t.Fatalf("reserve: got %d, %v, want 30 s ahead", first, err)
	}
	if again, err := p.Reserve(t.Context(), "w", now+29_000_000); err != nil || again != first {
		t.Fatalf("reserve within it: got %d, %v, want %d", again, err, first)
	}
	next, err := p.Reserve(t.Context(), "w", first+1)
	if err != nil || next <= first {
		t.Fatalf("reserve above it: got %d, %v", next, err)
	}
	if c, err := p.Load(t.Context(), "w"); err != nil || c.Ceiling != next {
		t.Fatalf("ceiling in the store: got %d, %v, want %d", c.Ceiling, err, next)
	}
}

func TestProgressIsConditional(t *testing.T) {
	g, p := owned(t)
	st := p.status()
	if err := g.session.Release(t.Context(), st.Owner()); err != nil {
		t.Fatal(err)
	}
	heir, err := g.join("w2", coordination.Place{}).Take(t.Context(), coordination.Take{Task: "orders", ExecutionID: uuid.Must(uuid.NewV7()).String()})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Save(t.Context(), "w", &pipeline.Saved{Points: []sdk.Point{{BatchNo: 1}}})
	if f := sdk.AsFault(err); !errors.Is(err, sdk.ErrFenced) || f.Claimant == nil || f.Claimant.Execution != heir.ExecutionID || f.Claimant.Epoch != heir.Epoch {
		t.Fatalf("save of a stale execution: got %v, want ErrFenced that names the heir", err)
	}
	if refused, lost := p.found(); !refused || lost {
		t.Errorf("found: refused %v, lost %v, want refused", refused, lost)
	}
	if _, err := p.Reserve(t.Context(), "w", 5); !errors.Is(err, sdk.ErrFenced) {
		t.Errorf("reserve of a stale execution: got %v", err)
	}
	if c, err := p.Load(t.Context(), "w"); err != nil || len(c.Points) != 0 || c.Ceiling != 0 {
		t.Errorf("progress: got %+v, %v, want none", c, err)
	}
}
