package embedded_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/coordtest"
	"github.com/datalink-go/datalink/coordination/embedded"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.nofailfile", "true") // mutants fail on purpose
	_ = flag.Set("rapid.shrinktime", "1s")
	os.Exit(m.Run())
}

func fresh(t coordtest.T) coordtest.Subject {
	dir := t.TempDir()
	open := func(ctx context.Context, dir string) *embedded.Store {
		s, err := embedded.Open(ctx, embedded.Config{Dir: dir, NoSync: true})
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open(t.Context(), dir)
	return coordtest.Subject{
		Store:   s,
		Expire:  func(ctx context.Context, id string) error { return s.Expire(ctx, id) },
		Abandon: s.Abandon,
		Snapshot: func(context.Context) func(context.Context) coordination.Store {
			var copied bytes.Buffer
			if err := s.Backup(&copied); err != nil {
				t.Fatalf("backup: %v", err)
			}
			return func(ctx context.Context) coordination.Store {
				if err := s.Close(); err != nil {
					t.Fatalf("close: %v", err)
				}
				if err := os.WriteFile(filepath.Join(dir, embedded.FileName), copied.Bytes(), 0o600); err != nil {
					t.Fatalf("restore: %v", err)
				}
				return open(ctx, dir)
			}
		},
	}
}

func TestSuite(t *testing.T) { coordtest.Run(t, fresh) }

func TestMutants(t *testing.T) { coordtest.RunMutants(t, fresh) }

func TestJournalIsTrimmed(t *testing.T) {
	s, err := embedded.Open(t.Context(), embedded.Config{Dir: t.TempDir(), Keep: 3, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := s.CreateTask(t.Context(), coordination.Definition{Name: "a", Desired: coordination.Running})
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Join(t.Context(), coordination.Worker{ID: "w"})
	if err != nil {
		t.Fatal(err)
	}
	const open = 2 // this execution is never closed
	id := func(i int) string { return fmt.Sprintf("0190a000-0000-7000-8000-%012d", i) }
	for i := range 12 {
		st, err := x.Take(t.Context(), coordination.Take{Task: "a", ExecutionID: id(i)})
		if err != nil {
			t.Fatal(err)
		}
		if i != open {
			if err := s.Append(t.Context(), coordination.Entry{Kind: coordination.EntryEnded, TaskUID: d.UID, ExecutionID: id(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.Release(t.Context(), st.Owner()); err != nil {
			t.Fatal(err)
		}
	}
	j, err := s.Journal(t.Context(), d.UID)
	if err != nil {
		t.Fatal(err)
	}
	starts := map[string]bool{}
	for _, e := range j {
		if e.Kind == coordination.EntryStarted {
			starts[e.ExecutionID] = true
		}
	}
	if len(starts) != 4 || !starts[id(open)] || !starts[id(11)] || !starts[id(9)] {
		t.Fatalf("executions in the journal: got %v, want the open one and the last three", starts)
	}
}
