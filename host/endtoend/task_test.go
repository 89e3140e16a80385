package endtoend

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// task is a task file with its data directory and target.
type task struct {
	t      testing.TB
	file   string
	data   string
	target string
}

// job is what a task file says.
type job struct {
	name   string // "" = arrive
	files  string
	reader string // more of the reader's configuration, in YAML's flow style
	writer string // more of the writer's
	target string // "" = one of its own
	more   string // more of the file: transforms, and what a writer has beside its configuration
}

func newTask(t testing.TB, j job) *task {
	t.Helper()
	dir := t.TempDir()
	k := &task{t: t, file: filepath.Join(dir, "task.yaml"), data: filepath.Join(dir, "data"), target: j.target}
	if k.target == "" {
		k.target = filepath.Join(dir, "target.db")
	}
	if j.name == "" {
		j.name = "arrive"
	}
	if j.reader == "" {
		j.reader = `tables: ["*.*"]`
	}
	if j.writer == "" {
		j.writer = "keyless: full-row-match"
	}
	text := fmt.Sprintf("apiVersion: datalink/v1\ntask: %s\nreader:\n  plugin: mysql\n  config: {files: [%q], %s}\nwriters:\n  - name: target\n    plugin: rdbms\n    config: {url: %q, %s}\n%s",
		j.name, j.files, j.reader, "sqlite://"+k.target, j.writer, j.more)
	if err := os.WriteFile(k.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

// run runs the task to the end of its source and returns what it printed.
func (k *task) run(args ...string) (output string, err error) {
	k.t.Helper()
	cmd := exec.Command(built.datalink, append([]string{"run", k.file, "--data-dir", k.data, "--output", "json"}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String(), nil
}

func (k *task) must() {
	k.t.Helper()
	if _, err := k.run(); err != nil {
		k.t.Fatal(err)
	}
}
