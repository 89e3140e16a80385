package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRewind puts the target back to an older copy between two batches of a
// running task.
func TestRewind(t *testing.T) {
	src := newModel(4)
	src.transactions(800)
	log := filepath.Join(t.TempDir(), "crash.000001")
	if err := src.write(log); err != nil {
		t.Fatal(err)
	}
	want := src.rows(false)
	for _, tt := range []struct {
		name   string
		off    string
		differ bool
	}{
		{"all checks on", "", false},
		{"batch number not compared", "batchno-off", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, spec{files: log, tables: "crash.*", writers: []writer{{name: "target"}}})
			target := r.spec.writers[0].path
			// Both points lie outside of transactions: the writer holds no lock there.
			p := r.run("DATALINK_FAILPOINT=target@delivery.begin:3:stop,target@delivery.committed:6:stop", "DATALINK_SWITCH="+tt.off)
			w := p.stopped("rdbms")
			copied := filepath.Join(t.TempDir(), "old.db")
			db := open(t, target)
			if _, err := db.Exec(fmt.Sprintf("VACUUM INTO '%s'", copied)); err != nil {
				t.Fatal(err)
			}
			old := progressOf(t, target)
			resume(w)
			until(t, "batches after the copy", func() bool {
				return p.ended() || len(progressOf(t, target)) > 0 && advanced(old, progressOf(t, target), 3)
			})
			w = p.stopped("rdbms")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			putBack(t, copied, target)
			resume(w)
			code := p.wait()
			r.gone(p)
			if tt.differ {
				if d := want.missing(t, target); d == "" || code != 0 {
					t.Errorf("run ended with %d, want 0, and the rows must differ: %q\n%s", code, d, p.tail())
				}
				return
			}
			if code != 1 || !strings.Contains(p.err.String(), "older copy") {
				t.Errorf("run ended with %d, want 1 and a message of an older copy\n%s", code, p.tail())
			}
			r.finish(want)
		})
	}
}

// advanced reports whether some lane is n batches further.
func advanced(old, now map[string]progress, n int64) bool {
	for lane, p := range now {
		if p.batch >= old[lane].batch+n {
			return true
		}
	}
	return false
}

// putBack restores a target as an operator does it: what belongs to the newer one
// goes, and the copy takes its name in one step.
func putBack(t *testing.T, from, to string) {
	t.Helper()
	for _, s := range []string{"-wal", "-shm"} {
		if err := os.Remove(to + s); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
