package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/google/go-cmp/cmp"

	building "github.com/datalink-go/datalink/examples/stack/programs"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
)

// built are the programs under test, with the tag faults, built when a test first
// needs them.
var built struct {
	once           sync.Once
	datalink, root string
	dir            string
	err            error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// programs returns the path of datalink with its connectors and the root of the
// repository.
func programs(t testing.TB) (datalink, root string) {
	t.Helper()
	built.once.Do(func() { built.err = buildAll() })
	must(t, built.err)
	return built.datalink, built.root
}

func buildAll() (err error) {
	if built.root, err = building.Root(); err != nil {
		return err
	}
	if built.dir, err = os.MkdirTemp("", "hbase-programs"); err != nil {
		return err
	}
	built.datalink, err = building.Build(built.dir, "faults", "./plugins/mysql", "./plugins/rdbms", "./plugins/hbase")
	return err
}

// task is a task that the daemon's program runs, as often as it is killed.
type task struct {
	t        testing.TB
	dir      string
	datalink string
	cmd      *exec.Cmd
	exited   chan struct{}
}

func newTask(t testing.TB, yaml string) *task {
	t.Helper()
	datalink, _ := programs(t)
	k := &task{t: t, dir: t.TempDir(), datalink: datalink}
	must(t, os.WriteFile(filepath.Join(k.dir, "task.yaml"), []byte(yaml), 0o600))
	t.Cleanup(k.kill)
	return k
}

// start runs the task with further environment.
func (k *task) start(env ...string) {
	k.t.Helper()
	log, err := os.OpenFile(filepath.Join(k.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(k.t, err)
	defer log.Close()
	k.cmd = exec.Command(k.datalink, "run", filepath.Join(k.dir, "task.yaml"), "--data-dir", filepath.Join(k.dir, "data"))
	k.cmd.Stdout, k.cmd.Stderr, k.cmd.Dir, k.cmd.Env = log, log, k.dir, append(os.Environ(), env...)
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	k.cmd.WaitDelay = 5 * time.Second
	must(k.t, k.cmd.Start())
	k.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(k.cmd, k.exited)
}

func (k *task) running() bool {
	select {
	case <-k.exited:
		return false
	default:
		return k.cmd != nil
	}
}

// kill ends the daemon by SIGKILL; what it started ends with it.
func (k *task) kill() {
	if k.cmd == nil {
		return
	}
	_ = k.cmd.Process.Kill()
	<-k.exited
	k.cmd = nil
}

// plugins returns the processes of the daemon's plugins with that name.
func (k *task) plugins(name string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range dirs {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		at := strings.LastIndexByte(string(data), ')')
		f := strings.Fields(string(data[at+1:]))
		if strings.HasSuffix(string(data[:at]), "("+name) && f[1] == strconv.Itoa(k.cmd.Process.Pid) && f[0] != "Z" {
			pid, _ := strconv.Atoi(strings.Fields(string(data))[0])
			pids = append(pids, pid)
		}
	}
	return pids
}

func (k *task) log() string {
	data, _ := os.ReadFile(filepath.Join(k.dir, "log"))
	return string(data[max(0, len(data)-6000):])
}

// deaths counts plugins that were killed, as the daemon's log tells.
func (k *task) deaths() int {
	data, _ := os.ReadFile(filepath.Join(k.dir, "log"))
	return strings.Count(string(data), "signal: killed")
}

// until waits until got is what want is.
func (k *task) until(what string, patience time.Duration, want, got func() []string) {
	k.t.Helper()
	var w, g []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if w, g = want(), got(); slices.Equal(w, g) {
			return
		}
		if !k.running() {
			k.t.Fatalf("%s: the task has ended\n%s", what, k.log())
		}
	}
	k.t.Fatalf("%s (-source +target): %s\n%s", what, cmp.Diff(w, g), k.log())
}

// sqlLines reads columns of a SQLite table in the form of cellLines; nothing while
// it is not there.
func sqlLines(file, table string, columns []string) (out []string) {
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro")
	if err != nil {
		return nil
	}
	defer db.Close()
	var list []string
	for _, c := range columns {
		list = append(list, `CASE WHEN "`+c+`" IS NULL THEN '\N' ELSE CAST("`+c+`" AS TEXT) END`)
	}
	rows, err := db.Query("SELECT " + strings.Join(list, ", ") + ` FROM "` + table + `"`)
	if err != nil {
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		row := make([]string, len(columns))
		dst := make([]any, len(columns))
		for i := range row {
			dst[i] = &row[i]
		}
		if rows.Scan(dst...) != nil {
			return nil
		}
		out = append(out, strings.Join(row, "\t"))
	}
	slices.Sort(out)
	return out
}

// shaker changes rows of a table at random: values, older values, columns and rows
// that go, single versions that go.
type shaker struct {
	c     *rpc.Client
	table string
	rows  int
	plain bool // values that are dated by the server, columns and rows that go
	rng   *rand.Rand
	n     int
}

func (s *shaker) step(ctx context.Context) error {
	var muts []rpc.Mutation
	d := []byte("d")
	for range 1 + s.rng.IntN(12) {
		s.n++
		m := rpc.NewMutation(fmt.Appendf(nil, "%03d", s.rng.IntN(s.rows)), nil)
		put := func(q string, ts uint64) {
			v := fmt.Sprintf("s%d", s.n)
			if q == "total" {
				v = fmt.Sprintf("%d.50", s.n)
			}
			m.Put(d, []byte(q), ts, []byte(v))
		}
		switch k := s.rng.IntN(10); {
		case k < 5:
			put("status", rpc.LatestTimestamp)
			put("total", rpc.LatestTimestamp)
		case k == 5:
			put("status", rpc.LatestTimestamp)
		case k == 6:
			m.Delete(d, []byte("total"), rpc.LatestTimestamp, rpc.TypeDeleteColumn)
		case k == 7:
			m.Delete(d, nil, rpc.LatestTimestamp, rpc.TypeDeleteFamily)
		case s.plain:
			put("total", rpc.LatestTimestamp)
		case k == 8: // what lies below appears
			m.Delete(d, []byte("status"), rpc.LatestTimestamp, rpc.TypeDelete)
		default: // older than what is there: nobody sees it
			put("status", uint64(time.Now().UnixMilli())-uint64(s.rng.IntN(5000)))
		}
		muts = append(muts, m)
	}
	errs, err := s.c.Batch(ctx, s.table, muts)
	return errors.Join(append(errs, err)...)
}

// shake changes rows until the function that it returns is called.
func (s *shaker) shake(t *testing.T, pause time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			calm, end := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
			if err := s.step(calm); err != nil {
				t.Errorf("change rows of %s: %v", s.table, err)
			}
			end()
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

var hit = regexp.MustCompile(`failpoint\.Hit\("(hbase\.[^"]+)"\)`)

// failPoints returns the fail points of this connector.
func failPoints(t *testing.T) (out []string) {
	t.Helper()
	must(t, filepath.WalkDir("internal", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range hit.FindAllStringSubmatch(string(data), -1) {
			out = append(out, m[1])
		}
		return err
	}))
	slices.Sort(out)
	return slices.Compact(out)
}
