package crashtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait for something that is certain to come.
const patience = 60 * time.Second

// process is a daemon in a session of its own, by which what it started is found.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err bytes.Buffer
	exited   chan struct{}
}

func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(built.datalink, args...), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: 0}
	p.cmd.WaitDelay = 5 * time.Second // a child that outlives it may hold its output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() { // nothing outlives a test that failed
		for _, c := range p.children() {
			c.signal(unix.SIGKILL)
		}
		_ = p.cmd.Process.Kill()
		<-p.exited
	})
	return p
}

// pid is also the number of the session.
func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// wait returns the exit code, or minus the signal that ended the process.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatalf("%v did not end in %s\n%s", p.cmd.Args[1:], patience, p.tail())
	}
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return -int(ws.Signal())
	}
	return ws.ExitStatus()
}

// How a daemon ends.
const (
	killed      = -int(syscall.SIGKILL)
	fenced      = 4
	interrupted = 130
)

// tail returns the end of what the process wrote.
func (p *process) tail() string {
	if !p.ended() {
		return "" // it is being written
	}
	s := p.err.String() + p.out.String()
	if len(s) > 60000 {
		s = "…" + s[len(s)-60000:]
	}
	return s
}

// child is a process in the session of a daemon.
type child struct {
	pid     int
	name    string // mysql, rdbms, or datalink for the child of modules
	state   byte
	session int
}

func (p *process) children() []child {
	var out []child
	for _, c := range inSession(p.pid()) {
		if c.pid != p.pid() && c.state != 'Z' {
			out = append(out, c)
		}
	}
	return out
}

func inSession(session int) []child {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []child
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		if c, ok := look(pid); ok && c.session == session {
			out = append(out, c)
		}
	}
	return out
}

// look reads /proc/PID/stat, see proc_pid_stat(5).
func look(pid int) (child, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return child{}, false
	}
	rest := string(data)[strings.LastIndexByte(string(data), ')')+1:]
	f := strings.Fields(rest) // state, parent, group, session
	c := child{pid: pid, state: f[0][0]}
	c.session, _ = strconv.Atoi(f[3])
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	first, more, _ := strings.Cut(string(args), "\x00")
	c.name = filepath.Base(first)
	if strings.HasPrefix(more, "wasm-child") {
		c.name = "wasm"
	}
	return c, true
}

// signal reaches the very process that was found, not one that got its number
// since.
func (c child) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(c.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := look(c.pid); ok && now.session == c.session {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// until polls a condition.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// halted reports whether SIGSTOP has reached a process.
func halted(pid int) bool {
	c, ok := look(pid)
	return ok && c.state == 'T'
}
