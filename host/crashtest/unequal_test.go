package crashtest

import (
	"path/filepath"
	"testing"
	"time"
)

// TestUnequalWriters kills the daemon while two writers are at different places
// inside one large transaction of a table without a key.
func TestUnequalWriters(t *testing.T) {
	src := newModel(5)
	src.transactions(30)
	src.large(3000)
	src.transactions(30)
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
		{"covered changes are written again", "skip-off", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, spec{files: log, tables: "crash.*", writers: []writer{{name: "ahead"}, {name: "behind"}}})
			ahead, behind := r.spec.writers[0].path, r.spec.writers[1].path
			p := r.run("DATALINK_FAILPOINT=ahead@delivery.committed:12:stop,behind@delivery.committed:6:stop")
			until(t, "both writers stop themselves", func() bool {
				if p.ended() {
					t.Fatalf("the daemon ended\n%s", p.tail())
				}
				n := 0
				for _, c := range p.children() {
					if c.name == "rdbms" && c.state == 'T' {
						n++
					}
				}
				return n == 2
			})
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if code := p.wait(); code != killed {
				t.Fatalf("the daemon ended with %d", code)
			}
			r.after(p)
			a, b := progressOf(t, ahead)["crash/ahead/0"], progressOf(t, behind)["crash/behind/0"]
			if a.ordinal == 0 || b.ordinal == 0 || a.offset != b.offset || !b.behind(a) {
				t.Fatalf("writers are at %+v and %+v, expected different ordinals of one transaction", a, b)
			}
			began := time.Now()
			p = r.run("DATALINK_SWITCH=" + tt.off)
			code := p.wait()
			r.after(p)
			if code != 0 {
				t.Fatalf("run ended with %d, want 0\n%s", code, p.tail())
			}
			t.Logf("second run took %s", time.Since(began))
			if !tt.differ {
				r.equal(want)
				return
			}
			if d := want.missing(t, ahead); d == "" {
				t.Error("the rows are equal although nothing was skipped")
			}
		})
	}
}
