package verifytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack/programs"
)

// built are the programs under test, with the tag faults.
var built struct{ dir, datalink string }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "verify")
	if err == nil {
		defer os.RemoveAll(dir)
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the programs under test:", err)
		return 1
	}
	return m.Run()
}

func build(dir string) (err error) {
	built.dir = dir
	built.datalink, err = programs.Build(dir, "faults", "./plugins/mysql", "./plugins/rdbms", "./examples/jsonfiles")
	return err
}

// worker is a daemon.
type worker struct {
	t    testing.TB
	data string
	cmd  *exec.Cmd
	log  *os.File
	gone chan struct{}
}

// serve starts a daemon on a data directory.
func serve(t testing.TB, data string, env []string, args ...string) *worker {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{t: t, data: data, log: log, gone: make(chan struct{})}
	w.cmd = exec.Command(built.datalink, append([]string{"serve", "--data-dir", data}, args...)...)
	w.cmd.Env = append(os.Environ(), env...)
	w.cmd.Stdout, w.cmd.Stderr = log, log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = w.cmd.Wait()
		close(w.gone)
	}()
	t.Cleanup(func() {
		w.kill()
		if t.Failed() {
			data, _ := os.ReadFile(log.Name())
			t.Logf("daemon on %s:\n%s", filepath.Base(w.data), tail(string(data), 60))
		}
		_ = log.Close()
	})
	eventually(t, 30*time.Second, "the daemon answers", func() error {
		_, err := w.try("task", "list")
		return err
	})
	return w
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// kill ends the daemon with SIGKILL.
func (w *worker) kill() {
	_ = w.cmd.Process.Signal(syscall.SIGCONT)
	_ = w.cmd.Process.Kill()
	<-w.gone
}

// failed is a command that ended with another code than 0.
type failed struct {
	code int
	text string
}

func (f *failed) Error() string { return fmt.Sprintf("exit code %d: %s", f.code, f.text) }

// try runs a command against the daemon.
func (w *worker) try(args ...string) (string, error) {
	cmd := exec.Command(built.datalink, append(args, "--data-dir", w.data, "--api", "unix://"+filepath.Join(w.data, "api.sock"))...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.String(), &failed{exit.ExitCode(), errs.String()}
	}
	return out.String(), err
}

func (w *worker) must(args ...string) string {
	w.t.Helper()
	out, err := w.try(args...)
	if err != nil {
		w.t.Fatalf("datalink %v: %v\n%s", args, err, out)
	}
	return out
}

// decode runs a command and reads what it prints.
func (w *worker) decode(v any, args ...string) error {
	w.t.Helper()
	out, err := w.try(append(args, "--output", "json")...)
	if out == "" {
		return err
	}
	if e := json.Unmarshal([]byte(out), v); e != nil {
		w.t.Fatalf("datalink %v printed %q: %v", args, out, e)
	}
	return err
}

func (w *worker) apply(text string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "task.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.must("task", "apply", file)
}

// eventually waits for a state.
func eventually(t testing.TB, within time.Duration, what string, f func() error) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(30 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s that %s: %v", within, what, err)
		}
	}
}
