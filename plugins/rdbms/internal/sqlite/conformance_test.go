package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
)

// TestConformance holds the writer to the kit. Syncs cost nothing where the files
// lie in memory.
func TestConformance(t *testing.T) {
	dir := t.TempDir()
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		d, err := os.MkdirTemp("/dev/shm", "datalink")
		must(t, err)
		dir = d
		t.Cleanup(func() { _ = os.RemoveAll(d) })
	}
	for _, lanes := range []int32{1, 4} {
		n := 0
		sub := &conformance.Subject{Name: fmt.Sprintf("sqlite, %d lanes", lanes), Lanes: []int32{lanes}, Append: true, Match: true}
		sub.New = func(context.Context) (conformance.Store, error) {
			n++
			return &store{t: t, file: filepath.Join(dir, fmt.Sprintf("%d-%d.db", lanes, n)), lanes: lanes}, nil
		}
		conformance.Run(t, sub)
	}
}

type store struct {
	t     *testing.T
	file  string
	lanes int32
}

func (o *store) Open(context.Context) (sdk.Target, error) {
	return New(Config{Path: o.file, Lanes: o.lanes, Keyless: FullRowMatch, BusyTimeout: 50 * time.Millisecond})
}

func (o *store) Rows(ctx context.Context, s *batch.Schema) ([]string, error) {
	cfg := Config{Path: o.file}.withDefaults()
	c, err := open(ctx, &cfg, readWrite)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t, err := describe(c, s.Name())
	if err != nil || t == nil {
		return nil, err
	}
	var cols []string
	for _, col := range s.Columns {
		cols = append(cols, "ifnull("+quote(col.Name)+",'NULL')")
	}
	rows, err := c.query(ctx, "SELECT "+strings.Join(cols, "||'|'||")+" FROM "+quote(t.name))
	var out []string
	for _, r := range rows {
		out = append(out, text(r[0]))
	}
	return out, err
}

func (o *store) Close(context.Context) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(o.file + suffix)
	}
	return nil
}
