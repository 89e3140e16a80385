package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // driver

	"github.com/datalink-go/datalink/host/wasmrt"
)

// TestMain builds the connectors that the scripts use; the program itself is this
// test binary.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == wasmrt.ChildArg {
		wasmrt.ChildMain()
	}
	if os.Getenv("DATALINK_TEST_BUNDLED") != "" {
		bundled = os.Getenv("DATALINK_TEST_BUNDLED")
	} else if err := buildConnectors(); err != nil {
		fmt.Fprintln(os.Stderr, "build the connectors:", err)
		os.Exit(1)
	}
	testscript.Main(m, map[string]func(){"datalink": mainForTest})
}

// mainForTest is main with connectors from the folder of TestMain.
func mainForTest() {
	os.Exit(runMain(os.Getenv("DATALINK_TEST_PLUGINS")))
}

func runMain(plugins string) int {
	ctx, stop := notify()
	defer stop()
	return run(ctx, os.Args[1:], plugins, os.Stdout, os.Stderr)
}

func buildConnectors() error {
	dir, err := os.MkdirTemp("", "datalink-script-")
	if err != nil {
		return err
	}
	var list []string
	for _, name := range []string{"mysql", "rdbms"} {
		out := filepath.Join(dir, name)
		if msg, err := exec.Command("go", "build", "-o", out, "../../../plugins/"+name).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, msg)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		list = append(list, name+"="+hex.EncodeToString(sum[:]))
	}
	return errorsJoin(os.Setenv("DATALINK_TEST_PLUGINS", dir), os.Setenv("DATALINK_TEST_BUNDLED", strings.Join(list, ",")))
}

func errorsJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("REPO", root)
			e.Setenv("DATALINK_TEST_PLUGINS", os.Getenv("DATALINK_TEST_PLUGINS"))
			e.Setenv("DATALINK_TEST_BUNDLED", os.Getenv("DATALINK_TEST_BUNDLED"))
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "keys": keys, "expand": expand, "waitfor": waitfor, "waitfile": waitfile, "registry": registryCommand,
			"tamper": tamper, "spawn": spawn, "stopped": stopped, "signal": signalCommand, "join": join, "sql": sqlCommand,
		},
	})
}

// exits runs a command and compares its exit code: exits CODE COMMAND ARG…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if (got == want) == neg {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// keys compares the keys of the JSON object in stdout: keys PATH KEY…; a path
// such as writers.0 leads into it, . is the whole.
func keys(ts *testscript.TestScript, _ bool, args []string) {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for _, p := range strings.Split(args[0], ".") {
		switch x := v.(type) {
		case map[string]any:
			if p != "" {
				v = x[p]
			}
		case []any:
			i, err := strconv.Atoi(p)
			ts.Check(err)
			if i >= len(x) {
				ts.Fatalf("%s: found %d items", args[0], len(x))
			}
			v = x[i]
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		ts.Fatalf("%s is %T, want an object", args[0], v)
	}
	got := []string{}
	for k := range m {
		got = append(got, k)
	}
	slices.Sort(got)
	want := slices.Clone(args[1:])
	slices.Sort(want)
	if !slices.Equal(got, want) {
		ts.Fatalf("%s has the keys %q, want %q", args[0], got, want)
	}
}

// expand replaces $REPO and $WORK in files.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, f := range args {
		s := strings.NewReplacer("$REPO", ts.Getenv("REPO"), "$WORK", ts.Getenv("WORK")).Replace(ts.ReadFile(f))
		ts.Check(os.WriteFile(ts.MkAbs(f), []byte(s), 0o600))
	}
}

// waitfor runs a command until its output holds a text: waitfor TEXT COMMAND ARG…
func waitfor(ts *testscript.TestScript, _ bool, args []string) {
	until := time.Now().Add(60 * time.Second)
	var out bytes.Buffer
	for time.Now().Before(until) {
		out.Reset()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		cmd := exec.CommandContext(ctx, lookPath(ts, args[1]), args[2:]...)
		cmd.Dir, cmd.Env = ts.Getenv("WORK"), childEnv(ts)
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run()
		cancel()
		if strings.Contains(out.String(), args[0]) {
			return
		}
		time.Sleep(50 * time.Millisecond) // between two runs of a program that tells the state
	}
	ts.Fatalf("%q has not come within a minute; last output:\n%s", args[0], out.String())
}

func lookPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, name); isFile(p) {
			return p
		}
	}
	ts.Fatalf("%s is not in PATH", name)
	return ""
}

func isFile(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode().IsRegular()
}

// waitfile waits until a file is there.
func waitfile(ts *testscript.TestScript, _ bool, args []string) {
	until := time.Now().Add(30 * time.Second)
	for time.Now().Before(until) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("%s has not come", args[0])
}

// child is the one process that a script runs beside itself; its output goes to
// child.out and child.err.
type child struct {
	cmd  *exec.Cmd
	done chan error
}

var children sync.Map // by work directory

// spawn starts datalink beside the script: spawn ARG…
func spawn(ts *testscript.TestScript, _ bool, args []string) {
	work := ts.Getenv("WORK")
	cmd := exec.Command(lookPath(ts, "datalink"), args...)
	cmd.Dir, cmd.Env = work, childEnv(ts)
	for _, f := range []struct {
		to   *io.Writer
		name string
	}{{&cmd.Stdout, "child.out"}, {&cmd.Stderr, "child.err"}} {
		w, err := os.Create(filepath.Join(work, f.name))
		ts.Check(err)
		ts.Defer(func() { w.Close() })
		*f.to = w
	}
	ts.Check(cmd.Start())
	c := &child{cmd, make(chan error, 1)}
	go func() { c.done <- cmd.Wait() }()
	children.Store(work, c)
	ts.Defer(func() { _ = cmd.Process.Kill() })
}

func childEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, k := range []string{"PATH", "HOME", "TMPDIR", "DATALINK_TEST_PLUGINS", "DATALINK_TEST_BUNDLED", "DATALINK_FAILPOINT"} {
		if v := ts.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

func theChild(ts *testscript.TestScript) *child {
	c, ok := children.Load(ts.Getenv("WORK"))
	if !ok {
		ts.Fatalf("nothing was spawned")
	}
	return c.(*child)
}

// stopped waits until the child has stopped itself at a fail point.
func stopped(ts *testscript.TestScript, _ bool, _ []string) {
	c := theChild(ts)
	until := time.Now().Add(60 * time.Second)
	for time.Now().Before(until) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
		ts.Check(err)
		if f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])); f[0] == "T" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("the child has not stopped")
}

// signalCommand sends signals to the child: signal INT CONT
func signalCommand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(theChild(ts).cmd.Process.Signal(map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "CONT": syscall.SIGCONT}[name]))
	}
}

// join waits for the child and compares its exit code.
func join(ts *testscript.TestScript, _ bool, args []string) {
	c := theChild(ts)
	select {
	case <-c.done:
	case <-time.After(60 * time.Second):
		ts.Fatalf("the child has not ended")
	}
	ts.Logf("child.err: %s", ts.ReadFile("child.err"))
	if got := strconv.Itoa(c.cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// registryCommand makes a registry folder with the connectors: registry DIR.
func registryCommand(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.Getenv("DATALINK_TEST_PLUGINS")
	cmd := exec.Command("go", "run", "./host/cmd/localregistry", "--to", ts.MkAbs(args[0]), filepath.Join(dir, "mysql"), filepath.Join(dir, "rdbms"))
	cmd.Dir = ts.Getenv("REPO")
	if out, err := cmd.CombinedOutput(); err != nil {
		ts.Fatalf("%v: %s", err, out)
	}
}

// sqlCommand runs a statement on a SQLite file and writes the rows to sql.out:
// sql FILE STATEMENT
func sqlCommand(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	rows, err := db.Query(args[1])
	ts.Check(err)
	defer rows.Close()
	var out strings.Builder
	cols, err := rows.Columns()
	ts.Check(err)
	for rows.Next() {
		vals, ptrs := make([]sql.NullString, len(cols)), make([]any, len(cols))
		for i := range vals {
			ptrs[i] = &vals[i]
		}
		ts.Check(rows.Scan(ptrs...))
		for i, v := range vals {
			if i > 0 {
				out.WriteByte('|')
			}
			out.WriteString(v.String)
		}
		out.WriteByte('\n')
	}
	ts.Check(rows.Err())
	ts.Check(os.WriteFile(ts.MkAbs("sql.out"), []byte(out.String()), 0o600))
}

// tamper adds a byte to the files that a pattern names.
func tamper(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("%s names nothing", args[0])
	}
	for _, f := range files {
		ts.Check(os.Chmod(f, 0o700))
		h, err := os.OpenFile(f, os.O_APPEND|os.O_WRONLY, 0)
		ts.Check(err)
		_, err = h.WriteString("x")
		ts.Check(err)
		ts.Check(h.Close())
	}
}
