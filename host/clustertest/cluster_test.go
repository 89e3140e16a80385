package clustertest

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/examples/stack"
)

func names(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("t%d", i))
	}
	return out
}

func (r *rig) spread(w *worker, tasks []string) map[string]int {
	r.t.Helper()
	var got map[string]int
	until(r.t, "all tasks run", func() bool {
		o := r.owners(w)
		got = map[string]int{}
		for _, by := range o {
			got[by]++
		}
		return len(o) == len(tasks)
	})
	return got
}

func (r *rig) whole(tasks []string) {
	r.t.Helper()
	for _, w := range r.workers { // nothing is written while it is looked at
		w.signal(syscall.SIGTERM, true)
	}
	for _, w := range r.workers {
		w.stop()
	}
	for _, name := range tasks {
		if wrong := r.wrong(name); wrong != "" {
			r.t.Errorf("target of %s: %s", name, wrong)
		}
	}
}

// A worker is killed, another leaves in order and comes back, one is stopped for
// longer than its session: tasks run elsewhere, nothing is missing or doubled.
func TestWorkersComeAndGo(t *testing.T) {
	r := newRig(t, stack.StartEnsemble(t, 3, "forceSync=no"), 2*time.Second)
	a, b, c := r.start("a"), r.start("b"), r.start("c")
	until(t, "three workers", func() bool { all, err := a.client().Workers(t.Context()); return err == nil && len(all) == 3 })
	tasks := names(6)
	r.apply(b, tasks...) // any worker takes commands
	if got := r.spread(c, tasks); got["a"] != 2 || got["b"] != 2 || got["c"] != 2 {
		t.Errorf("spread: got %v, want 2 each", got)
	}

	t.Run("killed", func(t *testing.T) {
		before := r.owners(b)
		killed := time.Now()
		a.killAll()
		for _, name := range tasks {
			if before[name] != "a" {
				continue
			}
			until(t, name+" runs at another worker", func() bool { w := r.owners(b)[name]; return w != "" && w != "a" })
			r.moves(name)
			if took := time.Since(killed); strict && took > r.session+time.Second {
				t.Errorf("task %s streams elsewhere after %s, want %s at most", name, took, r.session+time.Second)
			} else {
				t.Logf("task %s streams elsewhere after %s", name, took)
			}
		}
		after := r.owners(b)
		for _, name := range tasks {
			if w := before[name]; w != "a" && after[name] != w {
				t.Errorf("task %s moved from %s to %s although its worker lives", name, w, after[name])
			}
		}
		a.run()
		until(t, "the worker has tasks again", func() bool { return r.spread(b, tasks)["a"] > 0 })
	})

	t.Run("leaves in order", func(t *testing.T) {
		b.stop()
		o := r.owners(c)
		for _, name := range tasks {
			if o[name] == "b" {
				t.Errorf("task %s is still at b", name)
			}
		}
		b.run()
		until(t, "the worker has tasks again", func() bool { return r.spread(c, tasks)["b"] > 0 })
	})

	t.Run("stopped past its session", func(t *testing.T) {
		mine := ""
		until(t, "c runs a task", func() bool {
			for name, w := range r.owners(a) {
				if w == "c" {
					mine = name
				}
			}
			return mine != ""
		})
		c.signal(syscall.SIGSTOP, true) // its plugins hold no lock of the target then
		until(t, "the task runs elsewhere", func() bool { w := r.owners(a)[mine]; return w != "" && w != "c" })
		r.moves(mine)
		c.signal(syscall.SIGCONT, true)
		var found coordination.Overlap
		until(t, "the overlap is in the audit", func() bool {
			all, err := a.client().Overlaps(t.Context())
			if err != nil {
				return false
			}
			for _, o := range all {
				if o.Task == mine && o.Late.Worker == "c" {
					found = o
					return true
				}
			}
			return false
		})
		if found.Verdict != coordination.Harmless {
			t.Errorf("overlap: got %+v, want it harmless: the target fences", found)
		}
		until(t, "c is back", func() bool { return r.spread(a, tasks)["c"] > 0 })
	})

	t.Run("drained", func(t *testing.T) {
		a.cli("worker", "drain", "b")
		until(t, "b has nothing", func() bool { return r.spread(a, tasks)["b"] == 0 })
		a.cli("worker", "drain", "--end", "b")
		until(t, "b has tasks", func() bool { return r.spread(a, tasks)["b"] > 0 })
	})

	t.Run("commands reach the task wherever it is", func(t *testing.T) {
		for _, w := range []*worker{a, b, c} {
			w.cli("task", "pause", "t0")
			until(t, "t0 is paused", func() bool { _, runs := r.owners(w)["t0"]; return !runs })
			w.cli("task", "resume", "t0")
			until(t, "t0 runs", func() bool { _, runs := r.owners(w)["t0"]; return runs })
			w.cli("task", "restart", "t0")
			until(t, "t0 runs", func() bool { _, runs := r.owners(w)["t0"]; return runs })
		}
		a.cli("task", "delete", "t5")
		tasks = tasks[:5]
		r.spread(b, tasks)
	})
	r.whole(tasks)
}

// strict holds times to their aims: for a machine that does nothing else.
var strict = os.Getenv("DATALINK_CLUSTER_STRICT") != ""
