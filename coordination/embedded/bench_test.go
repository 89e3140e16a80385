package embedded_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/coordination/embedded"
)

// The writes of a running task: one Save or Mark a second at most. fsync included.
func BenchmarkWrites(b *testing.B) {
	s, err := embedded.Open(b.Context(), embedded.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CreateTask(b.Context(), coordination.Definition{Name: "a", Desired: coordination.Running}); err != nil {
		b.Fatal(err)
	}
	x, err := s.Join(b.Context(), coordination.Worker{ID: "w"})
	if err != nil {
		b.Fatal(err)
	}
	take := func() coordination.Status {
		st, err := x.Take(b.Context(), coordination.Take{Task: "a", ExecutionID: uuid.Must(uuid.NewV7()).String()})
		if err != nil {
			b.Fatal(err)
		}
		return st
	}
	st := take()
	step := coordination.Step{Writer: "w", Points: []coordination.Point{{Position: coordination.Position{Format: "mysql-files", Source: []byte("binlog.000001:4")}}}}
	b.Run("Save", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := x.Save(b.Context(), st.Owner(), step); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("TakeAndRelease", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := x.Release(b.Context(), st.Owner()); err != nil {
				b.Fatal(err)
			}
			st = take()
		}
	})
}
