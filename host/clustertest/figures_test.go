package clustertest

import (
	"database/sql"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
)

// gap is the longest time between two rows of ticks that were read at or after a
// moment: how long a task was not there.
func (r *rig) gap(task string, since time.Time) time.Duration {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+r.target(task)+"?mode=ro&_pragma=busy_timeout(20000)")
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	var ms int64
	if err := db.QueryRow("SELECT coalesce(max(b.at - a.at), 0) FROM ticks a JOIN ticks b ON b.n = a.n + 1 WHERE b.at >= ?", since.UnixMilli()).Scan(&ms); err != nil {
		r.t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// TestFigures measures how long tasks are not there: after kill -9 of their worker,
// with a restart grace of 0, and while one is moved.
func TestFigures(t *testing.T) {
	if os.Getenv("DATALINK_FIGURES") == "" {
		t.Skip("optional: make bench-cluster runs it, on a machine that does nothing else")
	}
	r := newRig(t, stack.StartEnsemble(t, 3, "forceSync=no"), 2*time.Second)
	a, b := r.start("a"), r.start("b")
	until(t, "two workers", func() bool { return len(r.workersOf(a)) == 2 })
	tasks := names(4)
	r.apply(a, tasks...)
	r.spread(a, tasks)

	var moves []time.Duration
	for i := range 10 {
		from := []*worker{a, b}[i%2]
		var on []string
		began := time.Now()
		before := r.owners(a)
		for _, name := range tasks {
			if before[name] == from.name {
				on = append(on, name)
			}
		}
		a.cli("worker", "drain", from.name)
		until(t, "all at the other", func() bool { return r.spread(a, tasks)[from.name] == 0 })
		for _, name := range on {
			r.moves(name)
			moves = append(moves, r.gap(name, began))
		}
		a.cli("worker", "drain", "--end", from.name)
	}
	slices.Sort(moves)
	t.Logf("planned move: %d moves, without events p50 %s, longest %s (aim 300ms)", len(moves), moves[len(moves)/2], moves[len(moves)-1])
	if strict && moves[len(moves)/2] > 300*time.Millisecond {
		t.Errorf("half of the moves took more than %s without events, want 300ms at most", moves[len(moves)/2])
	}

	var kills []time.Duration
	for range 4 {
		a.cli("group", "rebalance", "default")
		until(t, "b has tasks", func() bool { return r.spread(a, tasks)["b"] > 0 })
		var on []string
		for name, w := range r.owners(a) {
			if w == "b" {
				on = append(on, name)
			}
		}
		began := time.Now()
		b.killAll()
		for _, name := range on {
			until(t, name+" runs at a", func() bool { return r.owners(a)[name] == "a" })
			r.moves(name)
			kills = append(kills, r.gap(name, began))
		}
		b.run()
		until(t, "two workers", func() bool { return len(r.workersOf(a)) == 2 })
	}
	slices.Sort(kills)
	t.Logf("kill -9: %d tasks, without events p50 %s, longest %s (session %s, aim %s)", len(kills), kills[len(kills)/2], kills[len(kills)-1], r.session, r.session+time.Second)
	if strict && kills[len(kills)-1] > r.session+time.Second {
		t.Errorf("a task of a killed worker streams elsewhere after %s, want %s at most", kills[len(kills)-1], r.session+time.Second)
	}
	r.whole(tasks)
}
