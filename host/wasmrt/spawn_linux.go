package wasmrt

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/datalink-go/datalink/sdk/failpoint"
)

const self = "/proc/self/exe"

const memfdSeals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// memfile returns a sealed memory file that holds p.
func memfile(name string, p []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make a memory file for %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(p); err != nil {
		f.Close()
		return nil, fmt.Errorf("fill the memory file of %s: %w", name, err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, memfdSeals); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal the memory file of %s: %w", name, err)
	}
	return f, nil
}

// spawn starts a child and connects to it; it does not wait for the module.
func (r *Runtime) spawn(_ context.Context, m *Module, failPoint string) (*child, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	for _, fd := range fds { // room for a block, so that neither side waits in the middle of one; the kernel cuts it to its limit
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "child"), os.NewFile(uintptr(fds[1]), "host")
	defer theirs.Close()
	nc, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, fmt.Errorf("wrap the socket: %w", err)
	}
	aliveR, aliveW, err := os.Pipe()
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer aliveR.Close()
	c := &child{conn: nc.(*net.UnixConn), alive: aliveW, limit: m.cfg.message(), stderr: &tailWriter{}}
	cmd := exec.Command(r.cfg.Exec, r.cfg.Args...)
	cmd.Args[0] = filepath.Base(os.Args[0])
	cmd.Env = []string{} // nothing of the host's
	if failPoint != "" {
		cmd.Env = append(cmd.Env, failpoint.Env+"="+failPoint)
	}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{theirs, m.file, aliveR}
	cmd.Stderr = c.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r.onThread(func() { err = cmd.Start() })
	if err != nil {
		c.conn.Close()
		aliveW.Close()
		return nil, fmt.Errorf("start a child for module %s: %w", m.cfg.Name, err)
	}
	c.cmd = cmd
	c.exited = make(chan struct{})
	go func() {
		defer close(c.exited)
		_ = cmd.Wait() // the state is read from cmd.ProcessState
	}()
	return c, nil
}

// rss returns the resident anonymous bytes of a process, 0 when it is gone.
func rss(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}
