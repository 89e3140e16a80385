package zookeeper_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/coordtest"
	"github.com/datalink-go/datalink/coordination/zookeeper"
	"github.com/datalink-go/datalink/examples/stack"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childEnv); url != "" {
		child(url)
		return
	}
	flag.Parse()
	_ = flag.Set("rapid.nofailfile", "true") // mutants fail on purpose
	_ = flag.Set("rapid.shrinktime", "1s")
	if !isSet("rapid.checks") {
		_ = flag.Set("rapid.checks", "12")
	}
	os.Exit(m.Run())
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// servers starts an ensemble that need not survive the machine.
func servers(t testing.TB, n int) *stack.Ensemble {
	t.Helper()
	return stack.StartEnsemble(t, n, "forceSync=no")
}

var chroots atomic.Int64

func config(e *stack.Ensemble) zookeeper.Config {
	c, err := zookeeper.ParseURL(fmt.Sprintf("zookeeper://%s/datalink/test-%d?sessionTimeout=4s", e.Addrs(), chroots.Add(1)))
	if err != nil {
		panic(err)
	}
	return c
}

func open(t coordtest.T, ctx context.Context, cfg zookeeper.Config) *zookeeper.Store {
	s, err := zookeeper.Open(ctx, cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func fresh(e *stack.Ensemble) coordtest.New {
	return func(t coordtest.T) coordtest.Subject {
		cfg := config(e)
		s := open(t, t.Context(), cfg)
		return coordtest.Subject{
			Store:   s,
			Expire:  s.Expire,
			Abandon: s.Abandon,
			Snapshot: func(context.Context) func(context.Context) coordination.Store {
				back := snapshot(t, e)
				return func(ctx context.Context) coordination.Store {
					if err := s.Close(); err != nil {
						t.Fatalf("close: %v", err)
					}
					back()
					return open(t, ctx, cfg)
				}
			},
		}
	}
}

// snapshot copies the data of all servers; back puts it in place of what is there.
func snapshot(t coordtest.T, e *stack.Ensemble) (back func()) {
	kept := t.TempDir()
	offline := func(f func(data, copied string)) {
		for _, s := range e.Servers {
			s.Stop()
		}
		for i, s := range e.Servers {
			f(filepath.Join(s.Dir, "data"), filepath.Join(kept, fmt.Sprint(i)))
		}
		for _, s := range e.Servers {
			s.Restart()
		}
		e.Await()
	}
	replace := func(to, from string) {
		if err := os.RemoveAll(to); err != nil {
			t.Fatalf("%v", err)
		}
		if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v %s", err, out)
		}
	}
	offline(func(data, copied string) { replace(copied, data) })
	return func() { offline(func(data, copied string) { replace(data, copied) }) }
}

// The suites have servers of their own and wait most of the time.
func TestSuite(t *testing.T) {
	t.Parallel()
	coordtest.Run(t, fresh(servers(t, 1)))
}

func TestSuiteOnAnEnsemble(t *testing.T) {
	t.Parallel()
	coordtest.Run(t, fresh(servers(t, 3)))
}

func TestMutants(t *testing.T) {
	t.Parallel()
	coordtest.RunMutants(t, fresh(servers(t, 1)))
}
