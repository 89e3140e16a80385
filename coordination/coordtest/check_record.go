package coordtest

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/coordination"
)

var recordChecks = []Check{
	{"journal/order", journalOrder},
	{"journal/mark moves", journalMark},
	{"journal/kinds that the store writes are refused", journalKinds},
	{"overlap/created once", overlapOnce},
	{"overlap/resolutions", overlapResolutions},
}

func journalOrder(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	var want []string
	for range 12 {
		st := b.take(s)
		b.ok("ended", b.Append(b.ctx, coordination.Entry{Kind: coordination.EntryEnded, TaskUID: b.task.UID, ExecutionID: st.ExecutionID, Epoch: st.Epoch}))
		b.ok("release", s.Release(b.ctx, st.Owner()))
		want = append(want, st.ExecutionID+" started", st.ExecutionID+" ended")
	}
	var got []string
	last := uint64(0)
	for _, e := range b.journal() {
		if e.Seq <= last {
			t.Fatalf("entry %+v comes after number %d", e, last)
		}
		last = e.Seq
		got = append(got, e.ExecutionID+" "+string(e.Kind))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("journal (-want +got):\n%s", d)
	}
	if j, err := b.Journal(b.ctx, newID()); err != nil || len(j) != 0 {
		t.Fatalf("journal of an unknown task: got %d entries, %v", len(j), err)
	}
}

func journalMark(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	st := b.take(s)
	for n := range byte(4) {
		b.ok("mark", s.Mark(b.ctx, st.Owner(), []coordination.Mark{{Writer: "w", Position: at(n)}}))
	}
	j := b.journal()
	if got := kinds(j, st.ExecutionID); !slices.Equal(got, []string{"started", "mark"}) {
		t.Fatalf("journal: got %q, want one mark", got)
	}
	if m := j[1]; len(m.Positions) != 1 || m.Positions[0].Position.Ordinal != 3 {
		t.Fatalf("mark: got %+v, want the last position", m)
	}
}

func journalKinds(t T, fresh New) {
	b := setUp(t, fresh)
	for _, k := range []coordination.EntryKind{coordination.EntryStarted, coordination.EntryRaised, coordination.EntryMark, "", "else"} {
		b.is("append "+string(k), b.Append(b.ctx, coordination.Entry{Kind: k, TaskUID: b.task.UID, ExecutionID: newID()}), coordination.ErrInvalid)
	}
	b.is("append without an execution", b.Append(b.ctx, coordination.Entry{Kind: coordination.EntryEnded, TaskUID: b.task.UID}), coordination.ErrInvalid)
	if j := b.journal(); len(j) != 0 {
		t.Fatalf("journal: got %+v, want none", j)
	}
}

func overlapOnce(t T, fresh New) {
	b := setUp(t, fresh)
	now := time.Unix(1700000000, 0).UTC()
	want := coordination.Overlap{
		ID: newID(), Task: "orders", TaskUID: b.task.UID, Cause: coordination.CauseFence, Certain: true,
		Late:  coordination.Party{ExecutionID: newID(), Epoch: 3, Worker: "w1", Host: "h", StoreUID: "s", TaskUID: "t"},
		Owner: coordination.Party{ExecutionID: newID(), Epoch: 4}, By: "x", At: now, From: now.Add(-time.Minute), To: now,
		Tables:  []string{"shop.orders"},
		Writers: []coordination.OverlapWriter{{Name: "w", Level: "transactional", Written: 5, Refused: 1, From: at(1), To: at(2)}},
		Verdict: coordination.Harmless, Done: "stopped", Detail: "text",
	}
	b.ok("add", b.AddOverlap(b.ctx, want))
	changed := want
	changed.Done = "changed"
	b.ok("add again", b.AddOverlap(b.ctx, changed))
	got, err := b.Overlap(b.ctx, want.ID)
	b.ok("read", err)
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("overlap (-want +got):\n%s", d)
	}
	_, err = b.Overlap(b.ctx, newID())
	b.is("read an unknown one", err, coordination.ErrNotFound)
	b.is("add without an id", b.AddOverlap(b.ctx, coordination.Overlap{}), coordination.ErrInvalid)
}

func overlapResolutions(t T, fresh New) {
	b := setUp(t, fresh)
	ids := []string{newID(), newID()}
	slices.Sort(ids)
	slices.Reverse(ids) // the order of time is not that of the ids
	for i, id := range ids {
		b.ok("add", b.AddOverlap(b.ctx, coordination.Overlap{ID: id, Task: "orders", Open: true, At: time.Unix(int64(i), 0)}))
	}
	first, second := coordination.Resolution{ID: newID(), What: "proven dead"}, coordination.Resolution{ID: newID(), What: "repaired", Closes: true}
	b.ok("resolve", b.Resolve(b.ctx, ids[1], first))
	b.ok("resolve", b.Resolve(b.ctx, ids[1], second))
	b.ok("resolve again", b.Resolve(b.ctx, ids[1], second))
	b.is("resolve an unknown one", b.Resolve(b.ctx, newID(), first), coordination.ErrNotFound)
	all, err := b.Overlaps(b.ctx)
	b.ok("list", err)
	if len(all) != 2 || all[0].ID != ids[0] || !all[0].IsOpen() || all[1].IsOpen() || len(all[1].Resolutions) != 2 || all[1].Resolutions[0].What != "proven dead" {
		t.Fatalf("overlaps: got %+v, want the first open, the second closed by two resolutions", all)
	}
}
