package coordtest

import (
	"context"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/coordination"
)

var writeChecks = []Check{
	{"write/refused for a stale execution", writeStale},
	{"write/refused for a wrong epoch", writeWrongEpoch},
	{"write/refused with a lost session", writeLost},
	{"write/progress round trip", progressRoundTrip},
	{"write/step is whole", stepWhole},
	{"write/dead letters", deadLetters},
	{"write/ceiling never falls", ceiling},
	{"write/lanes that are gone", lanesGone},
	{"write/context that has ended", contextEnded},
	{"release/only its own node", releaseOwn},
}

// writes are all conditional ones.
func writes(ctx context.Context, s coordination.Session, o coordination.Owner) map[string]func() error {
	return map[string]func() error{
		"save": func() error {
			return s.Save(ctx, o, coordination.Step{Writer: "w", Points: []coordination.Point{point(0, 9)}})
		},
		"state": func() error { return s.SetState(ctx, o, "late", "late") },
		"mark":  func() error { return s.Mark(ctx, o, []coordination.Mark{{Writer: "w", Position: at(9)}}) },
		"raise": func() error { _, err := s.Raise(ctx, o, 0); return err },
	}
}

func (b *bench) unchanged(what string, st coordination.Status, points int) {
	b.Helper()
	got := b.status()
	if got == nil || got.ExecutionID != st.ExecutionID || got.Epoch != st.Epoch || got.State == "late" {
		b.Fatalf("%s: status: got %+v, want that of %s with epoch %d", what, got, st.ExecutionID, st.Epoch)
	}
	if p := b.progress("w"); len(p.Points) != points || points > 0 && p.Points[0].BatchNo == 9 {
		b.Fatalf("%s: progress: got %+v, want it unchanged", what, p)
	}
	for _, e := range b.journal() {
		if e.Kind == coordination.EntryMark {
			b.Fatalf("%s: journal: got %+v, want no mark", what, e)
		}
	}
}

func writeStale(t T, fresh New) {
	b := setUp(t, fresh)
	s1, s2 := b.join("w1"), b.join("w2")
	old := b.take(s1)
	b.ok("save of the owner", s1.Save(b.ctx, old.Owner(), coordination.Step{Writer: "w", Points: []coordination.Point{point(0, 1)}}))
	b.ok("release", s1.Release(b.ctx, old.Owner()))
	for name, f := range writes(b.ctx, s1, old.Owner()) {
		b.is(name+" after the release", f(), coordination.ErrFenced)
	}
	heir := b.take(s2)
	for name, f := range writes(b.ctx, s1, old.Owner()) {
		b.is(name+" after another took the task", f(), coordination.ErrFenced)
		b.unchanged(name, heir, 1)
	}
	b.ok("release", s2.Release(b.ctx, heir.Owner()))
	again := b.take(s1)
	for name, f := range writes(b.ctx, s1, old.Owner()) {
		b.is(name+" of the first execution while the same session runs another", f(), coordination.ErrFenced)
		b.unchanged(name, again, 1)
	}
}

func writeWrongEpoch(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	for _, epoch := range []uint64{st.Epoch - 1, st.Epoch + 1, 0} {
		o := st.Owner()
		o.Epoch = epoch
		for name, f := range writes(b.ctx, s, o) {
			b.is(name, f(), coordination.ErrFenced)
			b.unchanged(name, st, 0)
		}
	}
	o := st.Owner()
	o.TaskUID = newID()
	for name, f := range writes(b.ctx, s, o) {
		b.is(name+" for another task uid", f(), coordination.ErrFenced)
		b.unchanged(name, st, 0)
	}
}

func writeLost(t T, fresh New) {
	b := setUp(t, fresh)
	s1, s2 := b.join("w1"), b.join("w2")
	old := b.take(s1)
	b.ok("expire", b.Expire(b.ctx, s1.ID()))
	heir := b.take(s2)
	for name, f := range writes(b.ctx, s1, old.Owner()) {
		err := f()
		b.is(name+" of an expired session", err, coordination.ErrSessionLost)
		b.unchanged(name, heir, 0)
	}
	_, err := s1.Take(b.ctx, coordination.Take{Task: "orders", ExecutionID: newID()})
	b.is("take of an expired session", err, coordination.ErrSessionLost)
}

func progressRoundTrip(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	o := b.take(s)
	b.ok("save", s.Save(b.ctx, o.Owner(), coordination.Step{
		Writer:  "w",
		Points:  []coordination.Point{point(2, 2), point(0, 1), point(-1, 4), point(10, 3)},
		Items:   []coordination.Item{{Key: "schema/shop.orders", Version: 3, Value: []byte{0, 0xff}}, {Key: "a", Version: 1, Value: []byte("x")}},
		Ceiling: 77,
	}))
	b.ok("save", s.Save(b.ctx, o.Owner(), coordination.Step{
		Writer: "w", Points: []coordination.Point{point(2, 5)}, Items: []coordination.Item{{Key: "a", Deleted: true}, {Key: "b", Version: 2}},
	}))
	b.ok("save", s.Save(b.ctx, o.Owner(), coordination.Step{Writer: "other", Points: []coordination.Point{point(0, 8)}}))
	got := b.progress("w")
	if got.UpdatedAt.IsZero() {
		t.Errorf("progress has no time")
	}
	got.UpdatedAt = time.Time{}
	want := coordination.Progress{
		Writer: "w", Points: []coordination.Point{point(-1, 4), point(0, 1), point(2, 5), point(10, 3)},
		Items:   []coordination.Item{{Key: "b", Version: 2}, {Key: "schema/shop.orders", Version: 3, Value: []byte{0, 0xff}}},
		Ceiling: 77, Execution: o.ExecutionID, Epoch: o.Epoch,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("progress (-want +got):\n%s", d)
	}
	names, err := b.Writers(b.ctx, b.task.UID)
	b.ok("writers", err)
	if !slices.Equal(names, []string{"other", "w"}) {
		t.Fatalf("writers: got %q", names)
	}
	if p := b.progress("none"); len(p.Points)+len(p.Items) != 0 {
		t.Fatalf("progress of an unknown writer: got %+v", p)
	}
}

// stepWhole gives a step whose last part is refused: nothing of it may stay.
func stepWhole(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	b.is("save with an impossible lane", s.Save(b.ctx, st.Owner(), coordination.Step{
		Writer: "w", Points: []coordination.Point{point(0, 1), {Lane: -7}}, Items: []coordination.Item{{Key: "k", Version: 1}},
	}), coordination.ErrInvalid)
	if p := b.progress("w"); len(p.Points)+len(p.Items) != 0 {
		t.Fatalf("after the refusal: got %+v, want nothing", p)
	}
	b.ok("save", s.Save(b.ctx, st.Owner(), coordination.Step{
		Writer: "w", Points: []coordination.Point{point(0, 1)}, Items: []coordination.Item{{Key: "k", Version: 1}}, SetAside: []coordination.DeadLetter{{Number: 1}},
	}))
	if p := b.progress("w"); len(p.Points) != 1 || len(p.Items) != 1 || len(p.DeadLetters) != 1 {
		t.Fatalf("after the save: got %+v, want all three parts", p)
	}
}

func deadLetters(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	letter := func(n uint64, key string) coordination.DeadLetter {
		return coordination.DeadLetter{
			Number: n, Table: "shop.orders", Key: []byte(key), Record: []byte{0, 1, 0xfe}, Position: at(3), At: time.Unix(1700000000, 123000).UTC(),
			Fault: coordination.Fault{Code: "unfit", Message: "too long", Suggestion: "widen", Retryable: true},
		}
	}
	b.ok("save", s.Save(b.ctx, st.Owner(), coordination.Step{Writer: "w", SetAside: []coordination.DeadLetter{letter(10, "b"), letter(9, "a"), letter(100, "c")}}))
	b.ok("save again", s.Save(b.ctx, st.Owner(), coordination.Step{Writer: "w", SetAside: []coordination.DeadLetter{letter(9, "changed")}, Dropped: []uint64{10, 55}}))
	if d := cmp.Diff([]coordination.DeadLetter{letter(9, "a"), letter(100, "c")}, b.progress("w").DeadLetters); d != "" {
		t.Fatalf("dead letters (-want +got):\n%s", d)
	}
	b.ok("release", s.Release(b.ctx, st.Owner()))
	if got := b.progress("w").DeadLetters; len(got) != 2 {
		t.Fatalf("after the release: got %d dead letters, want 2", len(got))
	}
}

func ceiling(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	for _, c := range []struct{ set, want uint64 }{{100, 100}, {50, 100}, {0, 100}, {101, 101}} {
		b.ok("save", s.Save(b.ctx, st.Owner(), coordination.Step{Writer: "v", Ceiling: c.set}))
		if got := b.progress("v").Ceiling; got != c.want {
			t.Fatalf("ceiling after %d: got %d, want %d", c.set, got, c.want)
		}
	}
}

func lanesGone(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	b.ok("save", s.Save(b.ctx, st.Owner(), coordination.Step{Writer: "w", Points: []coordination.Point{point(0, 1), point(1, 1), point(2, 1), point(3, 1)}}))
	b.ok("save", s.Save(b.ctx, st.Owner(), coordination.Step{Writer: "w", Lanes: 2, Points: []coordination.Point{point(0, 2), point(1, 2)}}))
	if got := b.progress("w").Points; len(got) != 2 || got[0].BatchNo != 2 || got[1].BatchNo != 2 {
		t.Fatalf("points after two lanes went: got %+v, want lanes 0 and 1 at batch 2", got)
	}
}

func contextEnded(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	for name, f := range writes(ctx, s, st.Owner()) {
		b.is(name, f(), context.Canceled)
	}
	_, err := b.Tasks(ctx)
	b.is("tasks", err, context.Canceled)
}

func releaseOwn(t T, fresh New) {
	b := setUp(t, fresh)
	s1, s2 := b.join("w1"), b.join("w2")
	old := b.take(s1)
	b.ok("release", s1.Release(b.ctx, old.Owner()))
	b.ok("release again", s1.Release(b.ctx, old.Owner()))
	heir := b.take(s2)
	b.is("release of a task that another has", s1.Release(b.ctx, old.Owner()), coordination.ErrFenced)
	if got := b.status(); got == nil || got.ExecutionID != heir.ExecutionID {
		t.Fatalf("status: got %+v, want %s", got, heir.ExecutionID)
	}
}
