package clustertest

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/datalink-go/datalink/host/api"
)

// trouble is a kind of thing that goes wrong.
type trouble struct {
	name string
	do   func(s *stage)
}

// pause is longer than a session lives without a sign of life.
func (s *stage) pause() time.Duration {
	return s.session + s.session/2 + time.Duration(s.rnd.IntN(1500))*time.Millisecond
}

func (s *stage) any() (int, *worker) {
	i := s.rnd.IntN(len(s.workers))
	return i, s.workers[i]
}

// command sends a command to a worker that answers; what is refused is refused.
func (s *stage) command(w *worker, do func(ctx context.Context, c *api.Client) error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	if err := do(ctx, w.client()); err != nil {
		s.t.Logf("command: %v", err)
	}
}

func (s *stage) stopped(alone bool) {
	_, w := s.any()
	w.signal(syscall.SIGSTOP, alone)
	time.Sleep(s.pause())
	w.signal(syscall.SIGCONT, alone)
}

var troubles = []trouble{
	{"a worker stops past its session, its plugins go on", func(s *stage) { s.stopped(true) }},
	{"a worker and its plugins stop past its session", func(s *stage) { s.stopped(false) }},
	{"a worker is killed", func(s *stage) {
		_, w := s.any()
		w.killAll()
		s.journal.killed(w.name)
		time.Sleep(time.Duration(s.rnd.IntN(3000)) * time.Millisecond)
		w.run()
	}},
	{"a plugin is killed", func(s *stage) {
		_, w := s.any()
		if pid := w.plugin(s.rnd.IntN); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}},
	{"a worker is cut off from ZooKeeper", func(s *stage) {
		i, _ := s.any()
		s.toStore[i].cut.Store(true)
		time.Sleep(s.pause())
		s.toStore[i].heal()
	}},
	{"a worker is cut off from the databases", func(s *stage) {
		i, _ := s.any()
		s.toData[i].cut.Store(true)
		time.Sleep(s.pause())
		s.toData[i].heal()
	}},
	{"a follower is killed", func(s *stage) {
		if x := s.ensemble.Follower(); x != nil {
			x.Kill()
			x.Restart()
		}
	}},
	{"the leader is killed", func(s *stage) {
		if x := s.ensemble.Leader(); x != nil {
			x.Kill()
			x.Restart()
		}
	}},
	{"the ensemble is restarted", func(s *stage) {
		for _, x := range s.ensemble.Servers {
			x.Kill()
		}
		for _, x := range s.ensemble.Servers {
			x.Restart()
		}
		s.ensemble.Await()
	}},
	{"a database is killed", func(s *stage) {
		x := s.databases[s.rnd.IntN(len(s.databases))]
		x.Kill()
		x.Restart()
	}},
	{"a worker is drained", func(s *stage) {
		_, w := s.any()
		s.command(w, func(ctx context.Context, c *api.Client) error { _, err := c.Drain(ctx, w.name, true); return err })
		time.Sleep(time.Duration(s.rnd.IntN(1500)) * time.Millisecond)
		s.command(w, func(ctx context.Context, c *api.Client) error { _, err := c.Drain(ctx, w.name, false); return err })
	}},
	{"load is evened out", func(s *stage) {
		_, w := s.any()
		s.command(w, func(ctx context.Context, c *api.Client) error { return c.Rebalance(ctx, "default") })
	}},
	{"a plugin does not close while its worker is drained", func(s *stage) {
		_, w := s.any()
		pid := w.plugin(s.rnd.IntN)
		if pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		s.command(w, func(ctx context.Context, c *api.Client) error { _, err := c.Drain(ctx, w.name, true); return err })
		time.Sleep(3 * time.Second)
		if pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		s.command(w, func(ctx context.Context, c *api.Client) error { _, err := c.Drain(ctx, w.name, false); return err })
	}},
	{"the wall clock jumps", func(s *stage) {
		by := []string{"1h", "-1h", "3s", "-3s", "0s"}[s.rnd.IntN(5)]
		if err := os.WriteFile(filepath.Join(s.dir, "clock"), []byte(by), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}},
	{"a worker leaves in order", func(s *stage) {
		_, w := s.any()
		w.signal(syscall.SIGTERM, true)
		select {
		case <-w.exited:
		case <-time.After(20 * time.Second):
			s.t.Logf("worker %s did not end within 20 s", w.name)
			w.killAll()
			s.journal.killed(w.name)
		}
		w.run()
	}},
}
