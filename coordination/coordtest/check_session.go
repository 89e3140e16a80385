package coordtest

import (
	"errors"
	"slices"

	"github.com/datalink-go/datalink/coordination"
)

var sessionChecks = []Check{
	{"session/ended from outside", sessionExpired},
	{"session/end takes only its own nodes", sessionOthers},
	{"session/close", sessionClose},
	{"session/lease", sessionLease},
	{"session/fenced may report", sessionReport},
	{"session/members", sessionMembers},
}

func sessionExpired(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	b.quiet("lost", s.Lost())
	b.take(s)
	changed, err := b.Watch(b.ctx, "orders")
	b.ok("watch", err)
	b.ok("expire", b.Expire(b.ctx, s.ID()))
	b.fires("session ended", s.Lost())
	b.fires("status node went", changed)
	if got := b.status(); got != nil {
		t.Fatalf("status after the session ended: got %+v, want none", got)
	}
	b.take(b.join("w2"))
}

func sessionOthers(t T, fresh New) {
	b := setUp(t, fresh)
	b.create("other")
	s1, s2 := b.join("w1"), b.join("w2")
	b.take(s1)
	st, err := s2.Take(b.ctx, coordination.Take{Task: "other", ExecutionID: newID()})
	b.ok("take", err)
	b.ok("expire", b.Expire(b.ctx, s1.ID()))
	b.quiet("lost", s2.Lost())
	got, err := b.Status(b.ctx, "other")
	b.ok("status", err)
	if got.ExecutionID != st.ExecutionID {
		t.Fatalf("status of the other: got %+v", got)
	}
	b.ok("save of the other", s2.Save(b.ctx, st.Owner(), coordination.Step{Writer: "w"}))
}

func sessionClose(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w1")
	b.take(s)
	b.ok("close", s.Close(b.ctx))
	b.ok("close again", s.Close(b.ctx))
	b.fires("closed", s.Lost())
	if got := b.status(); got != nil {
		t.Fatalf("status after close: got %+v, want none", got)
	}
}

func sessionLease(t T, fresh New) {
	b := setUp(t, fresh)
	before := coordination.System{}.Boot()
	s := b.join("w1")
	b.take(s)
	l := s.Lease()
	if after := (coordination.System{}).Boot(); l.Sent < before || l.Sent > after {
		t.Fatalf("lease sent: got %s, want between %s and %s on CLOCK_BOOTTIME", l.Sent, before, after)
	}
	if l.Timeout > 0 && l.Deadline() != l.Sent+l.Timeout || l.Timeout == 0 && l.Deadline() != 0 {
		t.Fatalf("deadline: got %s of %+v", l.Deadline(), l)
	}
}

// sessionReport is the fenced execution that still has something to tell.
func sessionReport(t T, fresh New) {
	b := setUp(t, fresh)
	s1, s2 := b.join("w1"), b.join("w2")
	old := b.take(s1)
	b.ok("expire", b.Expire(b.ctx, s1.ID()))
	heir := b.take(s2)
	b.ok("lost", b.Append(b.ctx, coordination.Entry{Kind: coordination.EntryLost, TaskUID: b.task.UID, ExecutionID: old.ExecutionID, Epoch: old.Epoch, By: heir.ExecutionID}))
	end := coordination.Entry{
		Kind: coordination.EntryEnded, TaskUID: b.task.UID, ExecutionID: old.ExecutionID, Epoch: old.Epoch, Reason: "fenced",
		Positions: []coordination.Mark{{Writer: "w", Position: at(4)}},
	}
	b.ok("ended after fencing", b.Append(b.ctx, end))
	end.Reason = "changed"
	b.ok("ended once more", b.Append(b.ctx, end))
	b.ok("overlap after fencing", b.AddOverlap(b.ctx, coordination.Overlap{ID: newID(), Task: "orders", Cause: coordination.CauseFence}))
	if got := kinds(b.journal(), old.ExecutionID); !slices.Equal(got, []string{"started", "lost", "ended"}) {
		t.Fatalf("journal of the fenced: got %q, want started, lost, ended", got)
	}
	for _, e := range b.journal() {
		if e.Kind == coordination.EntryEnded && (e.Reason != "fenced" || len(e.Positions) != 1 || e.At.IsZero()) {
			t.Fatalf("ended: got %+v, want the first one", e)
		}
	}
	if o, err := b.Overlaps(b.ctx); err != nil || len(o) != 1 {
		t.Fatalf("overlaps: got %d, %v, want 1", len(o), err)
	}
	if got := b.status(); got == nil || got.ExecutionID != heir.ExecutionID {
		t.Fatalf("status: got %+v, want the heir's", got)
	}
}

func sessionMembers(t T, fresh New) {
	b := setUp(t, fresh)
	s := b.join("w2")
	b.join("w1")
	_, err := b.Join(b.ctx, coordination.Worker{ID: "w1"})
	b.is("join with an id that lives", err, coordination.ErrExists)
	_, err = b.Join(b.ctx, coordination.Worker{})
	b.is("join without an id", err, coordination.ErrInvalid)
	members := func() []string {
		ws, err := b.Workers(b.ctx)
		b.ok("workers", err)
		var ids []string
		for _, w := range ws {
			if w.JoinedAt.IsZero() || w.Place != place(w.ID) {
				b.Errorf("worker: got %+v", w)
			}
			ids = append(ids, w.ID)
		}
		return ids
	}
	if got := members(); !slices.Equal(got, []string{"w1", "w2"}) {
		t.Fatalf("workers: got %q", got)
	}
	b.ok("expire", b.Expire(b.ctx, s.ID()))
	if got := members(); !slices.Equal(got, []string{"w1"}) {
		t.Fatalf("workers after one ended: got %q", got)
	}
	b.ok("forget", b.Forget(b.ctx, coordination.Forgotten{Worker: "w2", By: "operator"}))
	f, err := b.Forgotten(b.ctx)
	b.ok("forgotten", err)
	if len(f) != 1 || f[0].Worker != "w2" || f[0].At.IsZero() {
		t.Fatalf("forgotten: got %+v", f)
	}
	if err := b.Forget(b.ctx, coordination.Forgotten{}); !errors.Is(err, coordination.ErrInvalid) {
		t.Fatalf("forget nobody: got %v", err)
	}
}
