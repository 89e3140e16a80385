package crashtest

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLargeTransaction moves a transaction that no window of the pipeline holds,
// with the limits that users have, and kills the writer after the first part.
func TestLargeTransaction(t *testing.T) {
	t.Parallel()
	src := newModel(6)
	src.transactions(10)
	src.large(120_000)
	log := filepath.Join(t.TempDir(), "crash.000001")
	if err := src.write(log); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, spec{files: log, tables: "crash.*", writers: []writer{{name: "target"}}})
	p := start(t, []string{"DATALINK_FAILPOINT=rdbms.committed:2"}, "run", r.file, "--data-dir", r.data, "--output", "json", "--log-level", "info")
	s := r.ends(p, 0)
	if !strings.Contains(p.err.String(), "signal: killed") {
		t.Error("the writer was not killed")
	}
	if s.Records.Read <= 100_000 {
		t.Errorf("read %d records, expected more than the window holds", s.Records.Read)
	}
	r.equal(src.rows(false))
}
