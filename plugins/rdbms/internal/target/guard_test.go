package target

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// fake is a writer that refuses the change of key "9".
type fake struct {
	Writer
	sdk.Tx
	got   []string
	calls int
}

func (f *fake) Claim(context.Context, sdk.Execution) (sdk.Claimed, error) {
	f.calls++
	return sdk.Claimed{}, nil
}

func (f *fake) Look(context.Context, sdk.Execution) (sdk.Claimed, error) {
	return sdk.Claimed{Lanes: 7}, nil
}

func (f *fake) Rehearse(context.Context, *batch.Schema) ([]string, sdk.Constraints, error) {
	return []string{"CREATE"}, sdk.Constraints{}, nil
}

func (f *fake) Prepare(context.Context, *batch.Schema) (sdk.Constraints, error) {
	f.calls++
	return sdk.Constraints{}, nil
}
func (f *fake) Begin(context.Context, []int32) (sdk.Tx, error) { f.calls++; return fakeTx{f}, nil }
func (f *fake) Close(context.Context) error                    { return nil }

type fakeTx struct{ f *fake }

func (t fakeTx) Fence(context.Context, []sdk.Next) error { return nil }
func (t fakeTx) Commit(context.Context) error            { return nil }
func (t fakeTx) Rollback(context.Context) error          { return nil }
func (t fakeTx) Apply(_ context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	n := 0
	for _, seg := range ch.Segments {
		for i := range seg {
			k := KeyText(seg[i].Schema, seg[i].Key)
			t.f.got = append(t.f.got, k)
			if k == "9" {
				return []sdk.RecordError{{Index: n, Err: sdk.Faultf(sdk.CodeConflict, "no")}}, nil
			}
			n++
		}
	}
	return nil, nil
}

func key(id int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(id)) }

func changes(ids ...int32) *sdk.Changes {
	s := schema()
	var segs [][]sdk.Change
	for _, id := range ids {
		segs = append(segs, []sdk.Change{{Op: sdk.Remove, Schema: s, Key: key(id)}})
	}
	return &sdk.Changes{Segments: segs}
}

func transact(t *testing.T, g *Guard, ch *sdk.Changes) []sdk.RecordError {
	t.Helper()
	ctx := context.Background()
	tx, err := g.Begin(ctx, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	bad, err := tx.Apply(ctx, ch)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	return bad
}

func TestSkippedKeys(t *testing.T) {
	t.Parallel()
	f := &fake{}
	g, err := NewGuard(f, GuardConfig{SkipKeys: []string{"t:2", "t:3", "other:1"}})
	if err != nil {
		t.Fatal(err)
	}
	bad := transact(t, g, changes(1, 2, 3, 9, 1))
	if d := cmp.Diff([]string{"1", "9"}, f.got); d != "" {
		t.Error(d)
	}
	if len(bad) != 1 || bad[0].Index != 3 {
		t.Errorf("got errors %+v, want one of record 3", bad)
	}
	if n := g.Stats().Skipped.Load(); n != 2 {
		t.Errorf("counted %d skipped changes, want 2", n)
	}
	if _, err := NewGuard(f, GuardConfig{SkipKeys: []string{"t"}}); err == nil {
		t.Error("a key without a table was taken")
	}
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	f := &fake{}
	g, err := NewGuard(f, GuardConfig{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if c, err := g.Claim(ctx, sdk.Execution{}); err != nil || c.Lanes != 7 {
		t.Errorf("got %+v, %v, want what is there", c, err)
	}
	if _, err := g.Prepare(ctx, schema()); err != nil {
		t.Error(err)
	}
	transact(t, g, changes(1))
	if f.calls != 0 || len(f.got) != 0 {
		t.Errorf("the writer got %d calls and wrote %v in a dry run", f.calls, f.got)
	}
}

// steps is a clock that moves only when somebody sleeps.
type steps struct {
	now   time.Time
	slept []time.Duration
}

func (s *steps) Now() time.Time { return s.now }
func (s *steps) Sleep(_ context.Context, d time.Duration) error {
	s.now, s.slept = s.now.Add(d), append(s.slept, d)
	return nil
}

func TestRate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows int64
		want []time.Duration
	}{{0, nil}, {100, []time.Duration{30 * time.Millisecond, 20 * time.Millisecond}}} {
		clock := &steps{now: time.Unix(1, 0)}
		g, err := NewGuard(&fake{}, GuardConfig{RowsPerSecond: c.rows, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		transact(t, g, changes(1, 2, 3))
		transact(t, g, changes(1, 2))
		transact(t, g, changes(1))
		if d := cmp.Diff(c.want, clock.slept); d != "" {
			t.Errorf("%d rows/s: %s", c.rows, d)
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	var h Histogram
	if h.Quantile(.5) != 0 {
		t.Error("a quantile of nothing")
	}
	for range 99 {
		h.Add(100)
	}
	h.Add(100000)
	for _, c := range []struct {
		q    float64
		want uint64
	}{{.5, 127}, {.98, 127}, {.999, 131071}} {
		if got := h.Quantile(c.q); got != c.want {
			t.Errorf("quantile %v: got %s, want %d", c.q, fmt.Sprint(got), c.want)
		}
	}
}
