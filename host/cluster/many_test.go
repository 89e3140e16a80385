package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/zookeeper"
	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/host/cluster"
)

// member takes and releases what the plan says, as a worker would, with tasks that
// do nothing.
type member struct {
	t       testing.TB
	id      string
	store   *zookeeper.Store
	session cluster.Session
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu    sync.Mutex
	runs  map[string]coordination.Status
	looks []time.Duration
}

func join(t testing.TB, cfg zookeeper.Config, id string) *member {
	t.Helper()
	s, err := zookeeper.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Join(t.Context(), coordination.Worker{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{t: t, id: id, store: s, session: x.(cluster.Session), runs: map[string]coordination.Status{}}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	if err := m.session.Offer(ctx, cluster.ReportFolder, id, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	c := cluster.Coordinator{Store: s, Session: m.session, Config: cluster.Config{}, OnLook: func(took time.Duration, _ cluster.Outcome) {
		m.mu.Lock()
		m.looks = append(m.looks, took)
		m.mu.Unlock()
	}}
	m.wg.Go(func() { c.Run(ctx) })
	m.wg.Go(func() { m.follow(ctx) })
	t.Cleanup(m.end)
	return m
}

// end is also how a worker is lost: its session goes.
func (m *member) end() {
	m.cancel()
	m.wg.Wait()
	m.store.Close()
}

func (m *member) follow(ctx context.Context) {
	running := map[string]context.CancelFunc{}
	for ctx.Err() == nil {
		changed, err := m.store.Changes(ctx, coordination.Topic{Folder: cluster.PlanFolder, Note: m.id})
		if err != nil {
			return
		}
		mine, err := cluster.Mine(ctx, m.store, m.id)
		if err != nil {
			return
		}
		want := map[string]bool{}
		for _, name := range mine {
			want[name] = true
			if running[name] == nil {
				one, stop := context.WithCancel(ctx)
				running[name] = stop
				m.wg.Go(func() { m.run(ctx, one, name) })
			}
		}
		for name, stop := range running {
			if !want[name] {
				stop()
				delete(running, name)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// run has a task until one ends.
func (m *member) run(ctx, one context.Context, name string) {
	id := uuid.Must(uuid.NewV7()).String()
	for {
		changed, err := m.store.Watch(one, name)
		if err != nil {
			return
		}
		st, err := m.session.Take(ctx, coordination.Take{Task: name, ExecutionID: id})
		if err == nil {
			m.mu.Lock()
			m.runs[name] = st
			m.mu.Unlock()
			<-one.Done()
			m.mu.Lock()
			delete(m.runs, name)
			m.mu.Unlock()
			if ctx.Err() == nil {
				if err := m.session.Release(ctx, st.Owner()); err != nil && ctx.Err() == nil {
					m.t.Errorf("release: %v", err)
				}
			}
			return
		}
		select {
		case <-changed:
		case <-one.Done():
			return
		}
	}
}

func (m *member) executions() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]string{}
	for name, st := range m.runs {
		out[name] = st.ExecutionID
	}
	return out
}

func settled(t testing.TB, n int, members ...*member) map[string]string {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		all := map[string]string{}
		for _, m := range members {
			for name, id := range m.executions() {
				all[name] = m.id + " " + id
			}
		}
		even := true
		for _, m := range members {
			even = even && len(m.executions()) >= n/len(members)*8/10 // the slack is a tenth
		}
		if len(all) == n && even {
			return all
		}
		if time.Now().After(end) {
			place, waiting, _, err := cluster.PlanOf(t.Context(), members[0].store)
			planned := map[string]int{}
			for _, w := range place {
				planned[w]++
			}
			for _, m := range members {
				t.Logf("%s runs %d tasks, the plan has %d", m.id, len(m.executions()), planned[m.id])
			}
			t.Fatalf("%d of %d tasks run after a minute; waiting: %d, %v", len(all), n, len(waiting), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// zxid is the number of the last transaction.
func zxid(t testing.TB, addr string) uint64 {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "srvr")
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "Zxid: 0x"); ok {
			n, err := strconv.ParseUint(text, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no zxid")
	return 0
}

// Many tasks on a real server: a worker more stops only what moves, the loss of the
// leader stops nothing, and idle tasks cost the store next to nothing.
func TestManyTasks(t *testing.T) {
	n := 200
	if s, err := strconv.Atoi(os.Getenv("DATALINK_TASKS")); err == nil {
		n = s
	}
	e := stack.StartEnsemble(t, 1, "forceSync=no")
	cfg, err := zookeeper.ParseURL("zookeeper://" + e.Addrs() + "/many?sessionTimeout=4s")
	if err != nil {
		t.Fatal(err)
	}
	a := join(t, cfg, "a")
	for i := range n {
		if _, err := a.store.CreateTask(t.Context(), coordination.Definition{Name: fmt.Sprintf("t%05d", i), Desired: coordination.Running}); err != nil {
			t.Fatal(err)
		}
	}
	b, c := join(t, cfg, "b"), join(t, cfg, "c")
	before := settled(t, n, a, b, c)

	from, began := zxid(t, e.Addrs()), time.Now()
	time.Sleep(5 * time.Second) // a rate is measured over a time
	rate := float64(zxid(t, e.Addrs())-from) / time.Since(began).Seconds()
	t.Logf("%d idle tasks: %.1f ZooKeeper writes a second", n, rate)
	if rate > 50 {
		t.Errorf("%.1f writes a second, want 50 at most", rate)
	}

	began = time.Now()
	d := join(t, cfg, "d")
	after := settled(t, n, a, b, c, d)
	t.Logf("a worker more has %d of %d tasks after %s", len(d.executions()), n, time.Since(began))
	moved := 0
	for name, was := range before {
		switch is := after[name]; {
		case is == was:
		case strings.HasPrefix(is, "d "):
			moved++
		default:
			t.Errorf("task %s ran as %s, now as %s: only tasks of d may move", name, was, is)
		}
	}
	if moved != len(d.executions()) || moved > n/4+1 {
		t.Errorf("%d tasks moved, d has %d", moved, len(d.executions()))
	}

	leader := leaderOf(t, b.store)
	rest := []*member{a, b, c, d}
	for i, m := range rest {
		if m.id == leader {
			m.end() // it takes its tasks with it
			rest = append(rest[:i:i], rest[i+1:]...)
			break
		}
	}
	last := settled(t, n, rest...)
	for name, was := range after {
		if id, _, _ := strings.Cut(was, " "); id != leader && last[name] != was {
			t.Errorf("task %s ran as %s, now as %s, although only the leader %s was lost", name, was, last[name], leader)
		}
	}
	var most time.Duration
	for _, m := range []*member{a, b, c, d} {
		for _, l := range m.looks {
			most = max(most, l)
		}
	}
	t.Logf("the longest look took %s to judge", most)
}

func leaderOf(t testing.TB, s *zookeeper.Store) string {
	t.Helper()
	data, err := s.Note(t.Context(), coordination.LeaderFolder, coordination.LeaderNote)
	if err != nil || data == nil {
		t.Fatalf("no leader: %v", err)
	}
	_, rest, _ := strings.Cut(string(data), `"worker":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}
