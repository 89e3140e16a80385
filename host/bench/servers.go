package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// server is a real server that examples/stack started.
type server struct {
	script, dir string
	port, pid   int
	socket      string
	facts       map[string]string // all that the script printed
}

// start starts a server of the kind in dir with further options.
func start(ctx context.Context, root, kind, dir string, options ...string) (*server, error) {
	s := &server{script: filepath.Join(root, "examples", "stack", kind+".sh"), dir: dir, facts: map[string]string{}}
	out, err := s.run(ctx, "", append([]string{"start", "--dir", dir, "--port", "0", "--"}, options...)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		s.facts[k] = v
		switch k {
		case "port":
			s.port, err = strconv.Atoi(v)
		case "pid":
			s.pid, err = strconv.Atoi(v)
		case "socket":
			s.socket = v
		}
		if err != nil {
			return nil, fmt.Errorf("%s printed %q", s.script, line)
		}
	}
	return s, nil
}

func (s *server) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.script, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(s.script), args[0], err, errs.Bytes())
	}
	return string(out), nil
}

func (s *server) sql(ctx context.Context, text string) (string, error) {
	out, err := s.run(ctx, text, "sql", "--dir", s.dir, "--", "-N")
	return strings.TrimSpace(out), err
}

// stop ends the server and removes its folder; it works also when ctx has ended.
func (s *server) stop() error {
	_, err := s.run(context.Background(), "", "stop", "--dir", s.dir)
	if rerr := os.RemoveAll(s.dir); err == nil {
		err = rerr
	}
	return err
}

// cpu is the time that a process and its threads have used, see proc_pid_stat(5).
func cpu(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	ticks := 0
	for _, i := range []int{11, 12} { // utime, stime
		n, _ := strconv.Atoi(string(f[i]))
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100)
}
