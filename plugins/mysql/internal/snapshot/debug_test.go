package snapshot

import (
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
)

func TestDebug(t *testing.T) {
	srv := stack.Start(t, "mysql")
	prepareConcurrent(srv, 20000)
	s := snapshotUnderLoad(t, srv, Config{Options: Options{ChunkRows: 500, Parallel: 3, StatementTimeout: time.Minute}, Piece: 16 << 10, Session: 100 * time.Millisecond}, func() {})
	for n, l := range s.model.lists {
		t.Log(n, len(l), l[:3])
	}
	for n, l := range s.model.tables {
		t.Log(n, len(l))
	}
	for _, d := range s.differ(concurrentColumns) {
		t.Error(d)
	}
}
