// Package stack starts real servers for tests through the scripts of this folder.
//
// Invariants: a server listens on 127.0.0.1, has a port and a folder of its own,
// and ends with the test that started it. A test that finds its server not
// installed is skipped, unless REQUIRE_STACK=1: then the script installs it.
//
// Life cycle: Start; SQL, Stop, Kill and Restart as the test likes; the clean-up
// of the test ends what still runs.
//
// What it does not do: it shares no server among tests and makes no accounts.
package stack

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
)

// Server is a server that a test owns.
type Server struct {
	Kind   string // name of the script without .sh
	Dir    string
	Host   string
	Port   int
	Socket string
	PID    int
	Facts  map[string]string // all KEY=value lines that the script printed

	tb      testing.TB
	options []string
}

// Start starts a server of the kind (mysql, mariadb, …) with further options of
// the server, and waits until it answers.
func Start(tb testing.TB, kind string, options ...string) *Server {
	tb.Helper()
	if os.Getenv("REQUIRE_STACK") == "" {
		if out, err := exec.Command(script(tb, kind), "installed").CombinedOutput(); err != nil {
			tb.Skipf("%s is not installed (%v %s); REQUIRE_STACK=1 installs it", kind, err, bytes.TrimSpace(out))
		}
	}
	s := &Server{Kind: kind, Dir: tb.TempDir(), tb: tb, options: options}
	tb.Cleanup(func() {
		if out, err := exec.Command(script(tb, kind), "stop", "--dir", s.Dir).CombinedOutput(); err != nil {
			tb.Errorf("stop %s: %v\n%s", kind, err, out)
		}
	})
	s.start("0")
	return s
}

// Restart starts the server again, on the port it had, after Stop or Kill. Options
// replace those of Start when there are any.
func (s *Server) Restart(options ...string) {
	s.tb.Helper()
	if len(options) > 0 {
		s.options = options
	}
	s.start(strconv.Itoa(s.Port))
}

// Stop ends the server in order.
func (s *Server) Stop() {
	s.tb.Helper()
	s.run(nil, "stop", "--dir", s.Dir)
}

// Kill ends the server with SIGKILL and waits until the process is gone: a start
// that still sees it believes that the server runs.
func (s *Server) Kill() {
	s.tb.Helper()
	if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
		s.tb.Fatalf("kill %s, pid %d: %v", s.Kind, s.PID, err)
	}
	for end := time.Now().Add(time.Minute); s.lives(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.tb.Fatalf("%s, pid %d, is still there a minute after SIGKILL", s.Kind, s.PID)
		}
	}
}

// lives reports whether the process is there and no zombie.
func (s *Server) lives() bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID))
	if err != nil {
		return false
	}
	_, rest, ok := bytes.Cut(data[max(0, bytes.LastIndexByte(data, ')')):], []byte(") "))
	return ok && len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}

// Signal sends a signal to the server's process.
func (s *Server) Signal(sig syscall.Signal) {
	s.tb.Helper()
	if err := syscall.Kill(s.PID, sig); err != nil {
		s.tb.Fatalf("signal %s to %s, pid %d: %v", sig, s.Kind, s.PID, err)
	}
}

// Addr returns host:port.
func (s *Server) Addr() string { return fmt.Sprintf("%s:%d", s.Host, s.Port) }

// SQL runs statements through the server's own client as its administrator and
// returns what it printed. Options go to the client.
func (s *Server) SQL(text string, options ...string) string {
	s.tb.Helper()
	return string(s.run([]byte(text), append([]string{"sql", "--dir", s.Dir, "--"}, options...)...))
}

func (s *Server) start(port string) {
	s.tb.Helper()
	out := s.run(nil, append([]string{"start", "--dir", s.Dir, "--port", port, "--"}, s.options...)...)
	s.Facts = map[string]string{}
	for line := range strings.Lines(string(out)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			s.Facts[k] = v
		}
	}
	s.Host, s.Socket = s.Facts["host"], s.Facts["socket"]
	var err error
	if s.Port, err = strconv.Atoi(s.Facts["port"]); err != nil {
		s.tb.Fatalf("%s printed no port:\n%s", s.Kind, out)
	}
	if s.PID, err = strconv.Atoi(s.Facts["pid"]); err != nil {
		s.tb.Fatalf("%s printed no pid:\n%s", s.Kind, out)
	}
}

func (s *Server) run(stdin []byte, args ...string) []byte {
	s.tb.Helper()
	cmd := exec.Command(script(s.tb, s.Kind), args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.tb.Fatalf("%s.sh %v: %v\n%s", s.Kind, args, err, errs.Bytes())
	}
	return out
}

// script finds the script of a kind from the folder of the test on upwards.
func script(tb testing.TB, kind string) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		path := filepath.Join(dir, "examples", "stack", kind+".sh")
		if _, err := os.Stat(path); err == nil {
			return path
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Fatalf("examples/stack/%s.sh is in no folder above the test", kind)
		}
		dir = up
	}
}
