package clustertest

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
)

// witness looks at a target all the time: no row of state may ever become older.
type witness struct {
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu   sync.Mutex
	back []string
}

func (r *rig) watch(task string) *witness {
	ctx, cancel := context.WithCancel(context.Background())
	w := &witness{stop: cancel}
	w.wg.Go(func() {
		seen := map[int64]int64{}
		for ctx.Err() == nil {
			now, err := r.state(task)
			if err == nil {
				for k, n := range now {
					if n < seen[k] {
						w.mu.Lock()
						w.back = append(w.back, fmt.Sprintf("key %d of %s went from %d to %d", k, task, seen[k], n))
						w.mu.Unlock()
					}
					seen[k] = n
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	r.t.Cleanup(func() { cancel(); w.wg.Wait() })
	return w
}

func (w *witness) found() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.back...)
}

func (r *rig) state(task string) (map[int64]int64, error) {
	if _, err := os.Stat(r.target(task)); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+r.target(task)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Query("SELECT k, n FROM state")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[int64]int64{}
	for rows.Next() {
		var k, n int64
		if err := rows.Scan(&k, &n); err != nil {
			return nil, err
		}
		out[k] = n
	}
	return out, rows.Err()
}

// setting reads an environment variable.
func setting(name string, standard time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(name)); err == nil {
		return d
	}
	return standard
}

// TestTorture lets anything happen to workers and ZooKeeper, in an order that the
// seed decides, and looks at the targets all the while and at the end.
// DATALINK_TORTURE sets how long, DATALINK_SEED which.
func TestTorture(t *testing.T) {
	if os.Getenv("DATALINK_TORTURE") == "" {
		t.Skip("optional: make torture runs it, for minutes")
	}
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("DATALINK_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("DATALINK_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 7))
	e := stack.StartEnsemble(t, 3, "forceSync=no")
	r := newRig(t, e, 2*time.Second)
	straight := r.url
	var cuts []*cutter
	for _, name := range []string{"a", "b", "c"} {
		c, url := cutOff(t, straight)
		cuts, r.url = append(cuts, c), url
		r.start(name)
	}
	until(t, "three workers", func() bool { return len(r.workersOf(r.workers[0])) == 3 })
	tasks := names(4)
	r.apply(r.workers[0], tasks...)
	var eyes []*witness
	for _, name := range tasks {
		eyes = append(eyes, r.watch(name))
	}
	r.spread(r.workers[1], tasks)

	pause := r.session + r.session/2
	actions := []struct {
		name string
		do   func()
	}{
		{"a worker stops past its session", func() {
			w := r.workers[rnd.IntN(3)]
			w.signal(syscall.SIGSTOP, true)
			time.Sleep(pause)
			w.signal(syscall.SIGCONT, true)
		}},
		{"a worker is cut off from ZooKeeper", func() {
			c := cuts[rnd.IntN(3)]
			c.cut.Store(true)
			time.Sleep(pause)
			c.heal()
		}},
		{"a worker is killed", func() {
			w := r.workers[rnd.IntN(3)]
			w.killAll()
			time.Sleep(time.Duration(rnd.IntN(3)) * time.Second)
			w.run()
		}},
		{"a plugin is killed", func() {
			w := r.workers[rnd.IntN(3)]
			if pids := w.pids(); len(pids) > 1 {
				if pid := pids[rnd.IntN(len(pids))]; pid != w.cmd.Process.Pid {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}},
		{"a follower is killed", func() {
			if s := e.Follower(); s != nil {
				s.Kill()
				s.Restart()
			}
		}},
		{"the leader is killed", func() {
			if s := e.Leader(); s != nil {
				s.Kill()
				s.Restart()
			}
		}},
		{"the ensemble is restarted", func() {
			for _, s := range e.Servers {
				s.Kill()
			}
			for _, s := range e.Servers {
				s.Restart()
			}
		}},
		{"a worker leaves in order", func() {
			w := r.workers[rnd.IntN(3)]
			w.signal(syscall.SIGTERM, true)
			select {
			case <-w.exited:
			case <-time.After(20 * time.Second):
				w.killAll()
			}
			w.run()
		}},
	}
	counts := map[string]int{}
	for end := time.Now().Add(setting("DATALINK_TORTURE", 20*time.Second)); time.Now().Before(end); {
		a := actions[rnd.IntN(len(actions))]
		t.Logf("%s", a.name)
		counts[a.name]++
		a.do()
		time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
	}
	e.Await()
	r.spread(r.workers[0], tasks)
	for _, name := range tasks {
		r.moves(name)
	}
	overlaps, err := r.workers[0].client().Overlaps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	certain := 0
	for _, o := range overlaps {
		if o.Certain {
			certain++
		}
	}
	t.Logf("%v; %d overlaps in the audit, %d of them certain", counts, len(overlaps), certain)
	r.whole(tasks)
	for _, eye := range eyes {
		eye.stop()
		for _, what := range eye.found() {
			t.Errorf("a late write: %s", what)
		}
	}
}

// TestWithoutFence shows that the witness sees late writes: with the conditions of
// the position write switched off, a worker that wakes up writes old rows.
func TestWithoutFence(t *testing.T) {
	r := newRig(t, stack.StartEnsemble(t, 1, "forceSync=no"), 2*time.Second)
	r.env = []string{"DATALINK_SWITCH=epoch-off,batchno-off"}
	a := r.start("a")
	until(t, "a answers", func() bool { return len(r.workersOf(a)) == 1 })
	r.apply(a, "t0")
	until(t, "t0 runs", func() bool { return r.owners(a)["t0"] == "a" })
	b := r.start("b")
	until(t, "b is there", func() bool { return len(r.workersOf(b)) == 2 })
	eye := r.watch("t0")
	late, other := a, b
	for try := 0; try < 8 && len(eye.found()) == 0; try++ {
		late.signal(syscall.SIGSTOP, true)
		until(t, "t0 runs elsewhere", func() bool { return r.owners(other)["t0"] == other.name })
		r.moves("t0")
		time.Sleep(500 * time.Millisecond) // the heir gets ahead
		late.signal(syscall.SIGCONT, true)
		until(t, late.name+" is back", func() bool {
			return len(r.workersOf(late)) == 2 && r.owners(late)["t0"] == other.name || len(eye.found()) > 0
		})
		late, other = other, late
	}
	if len(eye.found()) == 0 {
		t.Error("no late write was seen although nothing refuses them: the witness sees nothing")
	}
}
