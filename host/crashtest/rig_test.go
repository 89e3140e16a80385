package crashtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// rig is a task with its data directory and targets.
type rig struct {
	t    *testing.T
	file string
	data string
	spec spec
	last map[string]map[string]progress // by target and lane
}

// small makes many blocks and target transactions of few changes, and cuts the
// large one.
var small = []string{"DATALINK_BLOCK_EVENTS=64", "DATALINK_TARGET_RECORDS=100", "DATALINK_SPLIT_RECORDS=150"}

func newRig(t *testing.T, s spec) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, file: filepath.Join(dir, "task.yaml"), data: filepath.Join(dir, "data"), spec: s, last: map[string]map[string]progress{}}
	r.spec.writers = slices.Clone(s.writers)
	for i := range r.spec.writers {
		w := &r.spec.writers[i]
		switch {
		case w.path != "":
		case w.server != nil:
			w.path = w.server.database()
		default:
			w.path = filepath.Join(dir, w.name+".db")
		}
	}
	if err := os.WriteFile(r.file, r.spec.yaml(), 0o600); err != nil {
		t.Fatal(err)
	}
	r.copyTemplate(r.data)
	return r
}

func (r *rig) copyTemplate(to string) {
	r.t.Helper()
	if err := os.CopyFS(to, os.DirFS(built.template)); err != nil {
		r.t.Fatal(err)
	}
	private(r.t, to)
}

// private makes folders those of their owner, as a data directory has to be.
func private(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run starts the task to the end of its source.
func (r *rig) run(env ...string) *process {
	r.t.Helper()
	return start(r.t, append(append([]string{}, small...), env...), "run", r.file, "--data-dir", r.data, "--output", "json", "--log-level", "info")
}

// after looks at what a daemon that has ended left behind.
func (r *rig) after(p *process) {
	r.t.Helper()
	r.gone(p)
	r.forward()
}

// gone waits until nothing of the daemon runs any more.
func (r *rig) gone(p *process) {
	r.t.Helper()
	until(r.t, "end of the processes of a daemon that has ended", func() bool { return len(p.children()) == 0 })
}

// forward checks that no position went back since the last look.
func (r *rig) forward() {
	r.t.Helper()
	for _, w := range r.spec.writers {
		now := progressOf(r.t, w.path)
		for lane, was := range r.last[w.path] {
			if is := now[lane]; is.behind(was) {
				r.t.Errorf("target %s, %s: progress went back from %+v to %+v", w.name, lane, was, is)
			}
		}
		r.last[w.path] = now
	}
}

// finish runs the task until its source has ended, and compares.
func (r *rig) finish(want expected) *summary {
	r.t.Helper()
	p := r.run()
	s := r.ends(p, 0)
	r.equal(want)
	return s
}

// ends waits for a run and compares its exit code.
func (r *rig) ends(p *process, code int) *summary {
	r.t.Helper()
	if got := p.wait(); got != code {
		r.t.Fatalf("run ended with %d, want %d\n%s", got, code, p.tail())
	}
	r.after(p)
	s := new(summary)
	if err := json.Unmarshal(p.out.Bytes(), s); err != nil {
		r.t.Fatalf("summary of the run: %v\n%s", err, p.tail())
	}
	return s
}

// summary is what a test looks at of the result of a run.
type summary struct {
	ExecutionID string
	State       string
	Reason      string
	Records     struct{ Read, Written, Skipped int }
}

// equal compares every target with the source.
func (r *rig) equal(want expected) {
	r.t.Helper()
	for _, w := range r.spec.writers {
		if d := want.missing(r.t, w.path); d != "" {
			r.t.Errorf("target %s differs from the source:\n%s", w.name, d)
		}
	}
}

// stopped waits until a child of that name has stopped itself at a fail point.
func (p *process) stopped(name string) (out child) {
	p.t.Helper()
	until(p.t, name+" stops itself", func() bool {
		if p.ended() {
			p.t.Fatalf("the daemon ended before its %s had stopped itself\n%s", name, p.tail())
		}
		for _, c := range p.children() {
			if c.name == name && c.state == 'T' {
				out = c
				return true
			}
		}
		return false
	})
	return out
}

// resume continues a process that stopped itself.
func resume(c child) { c.signal(unix.SIGCONT) }
