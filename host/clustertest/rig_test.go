package clustertest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // reads targets without code of the connector

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/host/api"
)

// patience bounds every wait for something that is certain to come.
const patience = 60 * time.Second

// rig is an ensemble, workers and targets.
type rig struct {
	t       *testing.T
	e       *stack.Ensemble
	url     string
	dir     string
	session time.Duration
	grace   time.Duration
	workers []*worker
	env     []string
}

var chroots atomic.Int64

func newRig(t *testing.T, e *stack.Ensemble, session time.Duration) *rig {
	t.Helper()
	return &rig{t: t, e: e, dir: t.TempDir(), session: session, url: fmt.Sprintf("zookeeper://%s/cluster-%d?sessionTimeout=%s", e.Addrs(), chroots.Add(1), session)}
}

// worker is a daemon in a session of its own, by which what it started is found.
type worker struct {
	r      *rig
	name   string
	data   string
	url    string
	env    []string // beside the rig's
	cmd    *exec.Cmd
	log    *os.File
	exited chan struct{}
}

// start starts a worker, or starts it again in its data directory.
func (r *rig) start(name string, args ...string) *worker {
	r.t.Helper()
	return r.startWith(name, nil, args...)
}

// startWith starts a worker with further variables in its environment.
func (r *rig) startWith(name string, env []string, args ...string) *worker {
	r.t.Helper()
	w := &worker{r: r, name: name, data: filepath.Join(r.dir, name), url: r.url, env: env}
	if err := os.MkdirAll(w.data, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.data, "worker.id"), []byte(name+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.workers = append(r.workers, w)
	w.run(args...)
	r.t.Cleanup(func() {
		if r.t.Failed() {
			data, _ := os.ReadFile(w.log.Name())
			r.t.Logf("log of %s:\n%s", name, tail(data, 6000))
			if dir := os.Getenv("DATALINK_LOGS"); dir != "" { // for who looks for a cause
				_ = os.WriteFile(filepath.Join(dir, name+".log"), data, 0o600)
			}
		}
		w.killAll()
	})
	return w
}

func tail(data []byte, n int) []byte { return data[max(0, len(data)-n):] }

func (w *worker) run(args ...string) {
	w.r.t.Helper()
	var err error
	if w.log, err = os.OpenFile(filepath.Join(w.r.dir, w.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		w.r.t.Fatal(err)
	}
	w.cmd = exec.Command(built.datalink, append([]string{"serve", "--data-dir", w.data, "--coordination", w.url, "--restart-grace", w.r.grace.String()}, args...)...)
	w.cmd.Stdout, w.cmd.Stderr = w.log, w.log
	w.cmd.Env = append(append(os.Environ(), w.r.env...), w.env...)
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := w.cmd.Start(); err != nil {
		w.r.t.Fatal(err)
	}
	w.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(w.cmd, w.exited)
}

// pids are the worker's process and all that it started, by their session.
func (w *worker) pids() []int {
	procs, _ := os.ReadDir("/proc")
	var out []int
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join("/proc", p.Name(), "stat"))
		if err != nil {
			continue
		}
		f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(f) > 3 && f[3] == strconv.Itoa(w.cmd.Process.Pid) && f[0] != "Z" {
			out = append(out, pid)
		}
	}
	return out
}

// signal sends a signal to the daemon and all that it started, as a pause of the
// machine would; only to the daemon with alone.
func (w *worker) signal(sig syscall.Signal, alone bool) {
	if alone {
		_ = syscall.Kill(w.cmd.Process.Pid, sig)
		return
	}
	for _, pid := range w.pids() {
		_ = syscall.Kill(pid, sig)
	}
}

func (w *worker) killAll() {
	w.signal(syscall.SIGKILL, false)
	<-w.exited
	w.log.Close()
}

// lives reports whether the daemon's process is there, stopped or not.
func (w *worker) lives() bool {
	select {
	case <-w.exited:
		return false
	default:
		return true
	}
}

// plugin returns one of the worker's plugin processes; 0 = it has none.
func (w *worker) plugin(pick func(n int) int) int {
	pids := slices.DeleteFunc(w.pids(), func(pid int) bool { return pid == w.cmd.Process.Pid })
	if len(pids) == 0 {
		return 0
	}
	return pids[pick(len(pids))]
}

// stop ends the daemon in order.
func (w *worker) stop() {
	w.r.t.Helper()
	w.signal(syscall.SIGTERM, true)
	select {
	case <-w.exited:
	case <-time.After(patience):
		w.r.t.Fatalf("worker %s does not end", w.name)
	}
}

func (w *worker) client() *api.Client {
	c, err := api.NewClient("unix://"+filepath.Join(w.data, api.SocketFile), api.Access{})
	if err != nil {
		w.r.t.Fatal(err)
	}
	return c
}

// cli runs a command against the worker and returns its output.
func (w *worker) cli(args ...string) string {
	w.r.t.Helper()
	ctx, cancel := context.WithTimeout(w.r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, built.datalink, append(args, "--data-dir", w.data)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		w.r.t.Fatalf("datalink %v: %v\n%s%s", args, err, out, errs.Bytes())
	}
	return string(out)
}

// until polls a state.
func until(t testing.TB, what string, f func() bool) time.Duration {
	t.Helper()
	return within(t, patience, what, f)
}

func within(t testing.TB, patience time.Duration, what string, f func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !f() {
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %s", what, patience)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

func (r *rig) target(task string) string { return filepath.Join(r.dir, task+".db") }

// spec is a task that inserts for ever into a target of its own.
func (r *rig) spec(task, every string) string {
	return fmt.Sprintf(`apiVersion: datalink/v1
task: %s
reader: {plugin: ticker, config: {every: %s}}
writers:
  - name: w
    plugin: rdbms
    config: {url: "sqlite://%s"}
`, task, every, r.target(task))
}

func (r *rig) apply(w *worker, tasks ...string) {
	r.t.Helper()
	for _, name := range tasks {
		file := filepath.Join(r.dir, name+".yaml")
		if err := os.WriteFile(file, []byte(r.spec(name, "5ms")), 0o600); err != nil {
			r.t.Fatal(err)
		}
		w.cli("task", "apply", file)
	}
}

// last returns the greatest number at a target, and whether all before it are there.
func (r *rig) last(task string) (last int64, whole bool) {
	r.t.Helper()
	path := r.target(task)
	if _, err := os.Stat(path); err != nil {
		return 0, true
	}
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(20000)")
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	var n sql.NullInt64
	var count int64
	if err := db.QueryRow("SELECT max(n), count(*) FROM ticks").Scan(&n, &count); err != nil {
		return 0, true // no table yet
	}
	return n.Int64, n.Int64 == count
}

// wrong compares a target with what its own position says it holds; "" = right.
func (r *rig) wrong(task string) string {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+r.target(task)+"?_pragma=busy_timeout(20000)")
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	var last, count int64
	if err := db.QueryRow("SELECT coalesce(max(n), 0), count(*) FROM ticks").Scan(&last, &count); err != nil {
		return err.Error()
	}
	if last == 0 || last != count {
		return fmt.Sprintf("ticks has %d rows up to %d", count, last)
	}
	rows, err := db.Query("SELECT k, n FROM state")
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var k, n int64
		if err := rows.Scan(&k, &n); err != nil {
			return err.Error()
		}
		const keys = 16
		if want := last - ((last-k)%keys+keys)%keys; n != want {
			out = append(out, fmt.Sprintf("state of key %d is %d, want %d", k, n, want))
		}
	}
	return strings.Join(out, "; ")
}

// moves waits until a task writes more than it has, and returns how long it took.
func (r *rig) moves(task string) time.Duration {
	r.t.Helper()
	was, _ := r.last(task)
	return until(r.t, "task "+task+" writes", func() bool { n, _ := r.last(task); return n > was })
}

// owners returns who runs which task, by way of a worker that lives.
func (r *rig) owners(w *worker) map[string]string {
	out := map[string]string{}
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	all, err := w.client().Tasks(ctx)
	if err != nil {
		return out
	}
	for _, t := range all {
		if t.State == "running" {
			out[t.Name] = t.Worker
		}
	}
	return out
}
