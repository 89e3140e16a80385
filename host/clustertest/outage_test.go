package clustertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
)

// outage is how long ZooKeeper is away in the test of an outage.
func outage(t *testing.T) time.Duration {
	if s := os.Getenv("DATALINK_OUTAGE"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return 20 * time.Second
}

// plain is a task whose target is only idempotent: a folder of files.
func (r *rig) plain(task, every string) string {
	return fmt.Sprintf(`apiVersion: datalink/v1
task: %s
reader: {plugin: ticker, config: {every: %s}}
writers:
  - name: w
    plugin: jsonfiles
    config: {dir: %q}
`, task, every, r.folder(task))
}

func (r *rig) folder(task string) string { return filepath.Join(r.dir, task) }

// files counts the rows of ticks in a folder of files.
func (r *rig) files(task string) int {
	n := 0
	_ = filepath.WalkDir(r.folder(task), func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	return n
}

func (r *rig) applySpec(w *worker, name, spec string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
		r.t.Fatal(err)
	}
	w.cli("task", "apply", file)
}

// An outage of ZooKeeper stops no task whose target fences, and every task whose
// target does not, before its session can have ended.
func TestOutage(t *testing.T) {
	e := stack.StartEnsemble(t, 3, "forceSync=no")
	r := newRig(t, e, 4*time.Second)
	a := r.start("a")
	until(t, "the worker answers", func() bool { _, err := a.client().Workers(t.Context()); return err == nil })
	r.apply(a, "exact")
	r.applySpec(a, "plain", r.plain("plain", "5ms"))
	until(t, "both run", func() bool { return len(r.owners(a)) == 2 && r.files("plain") > 0 })
	before := r.owners(a)
	began := time.Now()
	for _, s := range e.Servers {
		s.Kill()
	}
	until(t, "the plain task stops", func() bool {
		n := r.files("plain")
		time.Sleep(300 * time.Millisecond) // sixty rows
		return r.files("plain") == n
	})
	if took := time.Since(began); strict && took > r.session {
		t.Errorf("the plain task wrote for %s, want less than the session time-out %s", took, r.session)
	}
	for time.Since(began) < outage(t) {
		if took := r.moves("exact"); strict && took > time.Second {
			t.Errorf("the exact task stood still for %s", took)
		}
	}
	for _, s := range e.Servers {
		s.Restart()
	}
	e.Await()
	until(t, "both run", func() bool { return len(r.owners(a)) == 2 })
	n := r.files("plain")
	until(t, "the plain task writes", func() bool { return r.files("plain") > n })
	r.moves("exact")
	if after := r.owners(a); after["exact"] != before["exact"] {
		t.Errorf("owners: got %v, want %v", after, before)
	}
	r.workers[0].stop()
	if wrong := r.wrong("exact"); wrong != "" {
		t.Errorf("target: %s", wrong)
	}
}

// A worker that is cut off from ZooKeeper and not from its targets: the plain task
// has ended there before the heir begins, the exact one is refused once it is not
// its own any more (B125, B129).
func TestWorkerCutFromZooKeeper(t *testing.T) {
	r := newRig(t, stack.StartEnsemble(t, 3, "forceSync=no"), 4*time.Second)
	c, url := cutOff(t, r.url)
	straight := r.url
	r.url = url
	a := r.start("a")
	until(t, "the worker answers", func() bool { _, err := a.client().Workers(t.Context()); return err == nil })
	r.apply(a, "exact")
	r.applySpec(a, "plain", r.plain("plain", "5ms"))
	until(t, "both run at a", func() bool { return len(r.owners(a)) == 2 && r.files("plain") > 0 })
	r.url = straight
	b := r.start("b")
	until(t, "b is there", func() bool { all, err := b.client().Workers(t.Context()); return err == nil && len(all) == 2 })
	b.cli("worker", "drain", "b") // a keeps both
	until(t, "a runs both", func() bool { o := r.owners(b); return o["exact"] == "a" && o["plain"] == "a" })
	b.cli("worker", "drain", "--end", "b")
	until(t, "both run", func() bool { return len(r.owners(b)) == 2 })
	if r.owners(b)["plain"] != "a" { // load was evened out
		b.cli("worker", "drain", "b")
		until(t, "a runs both", func() bool { o := r.owners(b); return o["exact"] == "a" && o["plain"] == "a" })
	}
	c.cut.Store(true)
	b.cli("worker", "drain", "--end", "b")
	until(t, "b runs both", func() bool { o := r.owners(b); return o["exact"] == "b" && o["plain"] == "b" })
	r.moves("exact")
	c.heal()
	until(t, "a is back", func() bool {
		for _, w := range r.workersOf(b) {
			if w == "a" {
				return true
			}
		}
		return false
	})
	// What a wrote last of the plain task lies before what b wrote first: the marks
	// of both are in the journal.
	var shown struct {
		Journal []struct {
			Kind, Worker, ExecutionID, Reason string
			At                                time.Time
		} `json:"journal"`
	}
	if err := json.Unmarshal([]byte(b.cli("task", "show", "plain", "--output", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, e := range shown.Journal {
		if e.Kind == "started" && e.Worker == "a" {
			id = e.ExecutionID
		}
	}
	until(t, "a reports its end", func() bool {
		if err := json.Unmarshal([]byte(b.cli("task", "show", "plain", "--output", "json")), &shown); err != nil {
			return false
		}
		for _, e := range shown.Journal {
			if e.Kind == "ended" && e.ExecutionID == id {
				return true
			}
		}
		return false
	})
	overlaps := map[string]bool{}
	all, err := b.client().Overlaps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if o.Late.Worker == "a" {
			overlaps[o.Task+" "+strconv.FormatBool(o.Certain)] = true
		}
	}
	if len(overlaps) == 0 {
		t.Error("the audit says nothing of a")
	}
	t.Logf("overlaps: %v", overlaps)
	a.stop()
	b.stop()
	if wrong := r.wrong("exact"); wrong != "" {
		t.Errorf("target: %s", wrong)
	}
}

func (r *rig) workersOf(w *worker) []string {
	var out []string
	all, err := w.client().Workers(r.t.Context())
	if err != nil {
		return nil
	}
	for _, x := range all {
		if x.State != "gone" {
			out = append(out, x.ID)
		}
	}
	return out
}
