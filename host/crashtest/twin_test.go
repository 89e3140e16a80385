package crashtest

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTwin runs one task from two data directories against one target. The first
// daemon is stopped with rows read and not yet sent and goes on after the second
// has taken the target over and written everything.
func TestTwin(t *testing.T) {
	src := newModel(3)
	src.transactions(400)
	log := filepath.Join(t.TempDir(), "crash.000001")
	if err := src.write(log); err != nil {
		t.Fatal(err)
	}
	want := src.rows(false)
	for _, tt := range []struct {
		name   string
		off    string // checks that the late daemon does without
		differ bool
		all    bool // its plugins are stopped as well, as by a pause of the machine
	}{
		{"all checks on", "", false, false},
		{"all of it stopped", "", false, true},
		{"epoch not compared", "epoch-off", false, false}, // the batch number refuses it
		{"batch number not compared", "batchno-off", false, false},
		{"neither compared", "epoch-off,batchno-off", true, false},
		{"all of it stopped, neither compared", "epoch-off,batchno-off", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			late := newRig(t, spec{files: log, tables: "crash.*", writers: []writer{{name: "target"}}})
			target := late.spec.writers[0].path
			p := late.run("DATALINK_FAILPOINT=pipeline.sending:6:stop", "DATALINK_SWITCH="+tt.off)
			until(t, "the first daemon stops itself", func() bool { return p.ended() || halted(p.pid()) })
			if p.ended() {
				t.Fatalf("the first daemon ended instead of stopping itself\n%s", p.tail())
			}
			// What it had sent is written, or its writer would hold the target.
			settled(t, target)
			var plugins []child
			if tt.all {
				plugins = p.children()
				for _, c := range plugins {
					c.signal(unix.SIGSTOP)
				}
			}

			owner := newRig(t, late.spec)
			o := owner.ends(start(t, small, "run", owner.file, "--data-dir", owner.data, "--take-over", "--output", "json"), 0)
			owner.equal(want)
			claimed := progressOf(t, target)
			if !halted(p.pid()) {
				t.Fatalf("the first daemon did not stay stopped\n%s", p.tail())
			}

			for _, c := range plugins {
				resume(c)
			}
			if err := p.cmd.Process.Signal(unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			code := p.wait()
			late.gone(p)
			d := want.missing(t, target)
			if tt.differ {
				if d == "" {
					t.Errorf("the late daemon wrote nothing although nothing stopped it, it ended with %d\n%s", code, p.tail())
				}
				return
			}
			if d != "" {
				t.Errorf("the late daemon wrote after the claim:\n%s", d)
			}
			if now := progressOf(t, target); !maps.Equal(now, claimed) {
				t.Errorf("progress is %+v, it was %+v after the owner had ended", now, claimed)
			}
			if code != fenced {
				t.Errorf("the late daemon ended with %d, want %d\n%s", code, fenced, p.tail())
			}
			var s summary
			if err := json.Unmarshal(p.out.Bytes(), &s); err != nil || s.State != "fenced" {
				t.Errorf("state %q, want fenced (%v)", s.State, err)
			}
			overlapIsListed(t, late, s.ExecutionID, o.ExecutionID)
		})
	}
}

// settled waits until nobody writes to a target any more.
func settled(t *testing.T, path string) {
	t.Helper()
	last, since := progressOf(t, path), time.Now()
	until(t, "the target comes to rest", func() bool {
		now := progressOf(t, path)
		if !maps.Equal(now, last) || len(now) == 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) > 300*time.Millisecond
	})
}

// overlapIsListed looks for the overlap in the audit of the late daemon.
func overlapIsListed(t *testing.T, r *rig, late, owner string) {
	t.Helper()
	p := start(t, nil, "audit", "list", "--data-dir", r.data, "--output", "json")
	if code := p.wait(); code != 0 {
		t.Fatalf("audit list ended with %d, want 0\n%s", code, p.tail())
	}
	type party struct{ ExecutionID string }
	var list struct {
		Overlaps []struct {
			Certain  bool
			Verdict  string
			Late     party
			Owner    party
			From, To time.Time
			Writers  []struct{ BatchesWritten, BatchesRefused int }
		}
	}
	if err := json.Unmarshal(p.out.Bytes(), &list); err != nil {
		t.Fatalf("audit list: %v\n%s", err, p.tail())
	}
	if len(list.Overlaps) != 1 {
		t.Fatalf("audit lists %d overlaps, want 1\n%s", len(list.Overlaps), p.tail())
	}
	o := list.Overlaps[0]
	refused := 0
	for _, w := range o.Writers {
		refused += w.BatchesRefused
	}
	if o.Late.ExecutionID != late || o.Owner.ExecutionID != owner || !o.Certain || o.Verdict != "harmless" || refused == 0 ||
		o.From.IsZero() || o.To.Before(o.From) {
		t.Errorf("overlap %+v, want a certain and harmless one of %s by %s with a window and a refused write\n%s", o, late, owner, p.tail())
	}
}
