package clustertest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
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
