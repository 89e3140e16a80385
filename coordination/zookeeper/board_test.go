package zookeeper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/datalink-go/datalink/coordination"
)

func TestBoard(t *testing.T) {
	e := servers(t, 1)
	r := newPair(t, e, nil)
	ctx := t.Context()
	a, b := r.x.(coordination.Candidate), r.other.(coordination.Candidate)
	var board, far coordination.Board = r.cut, r.direct

	t.Run("notes", func(t *testing.T) {
		if all, err := board.Notes(ctx, "x"); err != nil || len(all) != 0 {
			t.Fatalf("no folder yet: got %v, %v", all, err)
		}
		changed, err := board.Changes(ctx, coordination.Topic{Folder: "x"})
		ok(t, "watch", err)
		ok(t, "put", far.Put(ctx, "x", "b/1", []byte("1")))
		<-changed
		changed, err = board.Changes(ctx, coordination.Topic{Folder: "x", Note: "b/1"})
		ok(t, "watch", err)
		ok(t, "put", far.Put(ctx, "x", "b/1", []byte("2")))
		<-changed
		ok(t, "put", far.Put(ctx, "x", "a", []byte("3")))
		all, err := board.Notes(ctx, "x")
		if err != nil || len(all) != 2 || all[0].Name != "a" || all[1].Name != "b/1" || string(all[1].Value) != "2" {
			t.Fatalf("notes: got %v, %v", all, err)
		}
		ok(t, "remove", board.Remove(ctx, "x", "a"))
		ok(t, "remove again", board.Remove(ctx, "x", "a"))
		if all, err := far.Notes(ctx, "x"); err != nil || len(all) != 1 {
			t.Fatalf("after the removal: got %v, %v", all, err)
		}
	})
	t.Run("definitions", func(t *testing.T) {
		changed, err := board.Changes(ctx, coordination.AllTasks)
		ok(t, "watch", err)
		d, err := far.Some(ctx, []string{"none", "orders"})
		if err != nil || len(d) != 1 {
			t.Fatalf("some: got %v, %v", d, err)
		}
		_, err = r.direct.UpdateTask(ctx, d[0])
		ok(t, "update", err)
		<-changed
	})
	t.Run("leader", func(t *testing.T) {
		term, err := a.Campaign(ctx)
		ok(t, "campaign", err)
		again, err := a.Campaign(ctx)
		if err != nil || again != term {
			t.Fatalf("again: got %d, %v, want %d", again, err, term)
		}
		if _, err := b.Campaign(ctx); !errors.Is(err, coordination.ErrHeld) {
			t.Fatalf("another: got %v, want ErrHeld", err)
		}
		ok(t, "put", a.PutAs(ctx, term, "plan", map[string][]byte{"w": []byte("1"), "v": []byte("1")}))
		if err := b.PutAs(ctx, term, "plan", map[string][]byte{"w": []byte("2")}); !errors.Is(err, coordination.ErrFenced) {
			t.Fatalf("put of a follower: got %v, want ErrFenced", err)
		}
		ok(t, "offer", a.Offer(ctx, "own", "n", []byte("1")))
		ok(t, "offer again", a.Offer(ctx, "own", "n", []byte("2")))
		if err := b.Offer(ctx, "own", "n", nil); !errors.Is(err, coordination.ErrExists) {
			t.Fatalf("offer of another: got %v, want ErrExists", err)
		}
		changed, err := far.Changes(ctx, coordination.Topic{Folder: coordination.LeaderFolder, Note: coordination.LeaderNote}, coordination.Members)
		ok(t, "watch", err)
		r.p.cut.Store(true) // the leader is gone for longer than its session
		<-changed
		var next uint64
		until(t, "another leads", 10*time.Second, func() bool { next, err = b.Campaign(ctx); return err == nil })
		if next <= term {
			t.Errorf("term: got %d after %d", next, term)
		}
		r.p.cut.Store(false)
		r.p.drop()
		<-r.x.Lost()
		if err := a.PutAs(ctx, term, "plan", map[string][]byte{"w": []byte("2")}); !errors.Is(err, coordination.ErrSessionLost) {
			t.Errorf("put of the former leader: got %v, want ErrSessionLost", err)
		}
		if err := b.PutAs(ctx, term, "plan", map[string][]byte{"w": []byte("2")}); !errors.Is(err, coordination.ErrFenced) {
			t.Errorf("put in the former term: got %v, want ErrFenced", err)
		}
		ok(t, "put", b.PutAs(ctx, next, "plan", map[string][]byte{"v": nil}))
		all, err := far.Notes(ctx, "plan")
		if err != nil || len(all) != 1 || string(all[0].Value) != "1" {
			t.Errorf("plan: got %v, %v, want that of the first leader less v", all, err)
		}
		if own, err := far.Notes(ctx, "own"); err != nil || len(own) != 0 {
			t.Errorf("offers of a lost session: got %v, %v, want none", own, err)
		}
	})
}
