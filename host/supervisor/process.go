package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datalink-go/datalink/sdk/serve/link"
)

// Rlimits bound what a plugin's process may use; see getrlimit(2).
type Rlimits struct {
	AddressSpace uint64 // bytes; 0 = no limit. A Go program reserves about 1 GiB of it
	OpenFiles    uint64 // 0 = as the host
	Core         uint64 // bytes of a core file; 0 = none
}

// pipeGrace is how long output is still read after a process has ended, for
// what a stranger outside of its group keeps open.
const pipeGrace = time.Second

// process is a started plugin. It implements go-plugin's runner.Runner.
type process struct {
	name   string
	cmd    *exec.Cmd
	hello  link.Hello
	limits Rlimits
	launch *Launcher
	off    switches

	stdin          *os.File // open for as long as the plugin may live
	stdout, stderr *os.File
	silent         chan struct{} // closed when all of stderr was read
	exited         chan struct{}
	state          *os.ProcessState // after exited
	stopOnce       sync.Once

	mu      sync.Mutex
	pid     int  // 0 = not started
	killed  bool // by the host, while it ran
	aborted bool // to be killed as soon as it is started
}

func newProcess(l *Launcher, cfg *Config, hello link.Hello) *process {
	img := cfg.Image
	p := &process{
		name: img.Name, launch: l, limits: cfg.Rlimits, hello: hello, off: cfg.off, exited: make(chan struct{}), silent: make(chan struct{}),
		cmd: &exec.Cmd{
			Path: img.path(), Args: []string{img.Name}, Env: []string{}, Dir: cfg.Dir, ExtraFiles: cfg.Inherit,
			SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		},
	}
	if cfg.off.deathSignal {
		p.cmd.SysProcAttr.Pdeathsig = 0
	}
	return p
}

// switches turn single guarantees off, so that a test can show that another one
// holds without them, or what they prevent.
type switches struct {
	deathSignal bool // no signal at the end of the host
	groupKill   bool // what the plugin started is left alone
}

// Start implements runner.Runner.
func (p *process) Start(context.Context) error {
	var ends [3]*os.File // of the child
	pipes := func() error {
		var err error
		if ends[0], p.stdin, err = os.Pipe(); err != nil {
			return err
		}
		if p.stdout, ends[1], err = os.Pipe(); err != nil {
			return err
		}
		p.stderr, ends[2], err = os.Pipe()
		return err
	}
	err := pipes()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = ends[0], ends[1], ends[2]
	if err == nil {
		err = p.launch.Start(p.cmd)
	}
	for _, f := range ends {
		f.Close()
	}
	if err != nil {
		p.closePipes()
		return fmt.Errorf("start plugin %s: %w", p.name, err)
	}
	p.mu.Lock()
	p.pid = p.cmd.Process.Pid
	aborted := p.aborted
	p.mu.Unlock()
	go p.reap()
	if aborted {
		p.kill()
	}
	if err = p.restrict(); err == nil {
		err = p.hello.Write(p.stdin)
	}
	if err != nil {
		p.kill()
		return fmt.Errorf("start plugin %s: %w", p.name, err)
	}
	return nil
}

// restrict sets the limits before the plugin is told anything.
func (p *process) restrict() error {
	set := func(what string, resource int, v uint64) error {
		if err := unix.Prlimit(p.started(), resource, &unix.Rlimit{Cur: v, Max: v}, nil); err != nil {
			return fmt.Errorf("limit of %s to %d: %w", what, v, err)
		}
		return nil
	}
	err := set("core file", unix.RLIMIT_CORE, p.limits.Core)
	if err == nil && p.limits.AddressSpace > 0 {
		err = set("address space", unix.RLIMIT_AS, p.limits.AddressSpace)
	}
	if err == nil && p.limits.OpenFiles > 0 {
		err = set("open files", unix.RLIMIT_NOFILE, p.limits.OpenFiles)
	}
	return err
}

// reap waits for the end and takes the rest of the group along. The group is
// signalled before the leader is reaped, while its number cannot be another's.
func (p *process) reap() {
	for {
		err := unix.Waitid(unix.P_PID, p.started(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.signalGroup()
	_ = p.cmd.Wait() // how it ended is in the state
	p.mu.Lock()
	p.state = p.cmd.ProcessState
	p.mu.Unlock()
	late := time.Now().Add(pipeGrace)
	_ = p.stdout.SetReadDeadline(late)
	_ = p.stderr.SetReadDeadline(late)
	_ = p.stdin.Close()
	close(p.exited)
}

// kill ends the process group at once.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	p.signalGroup()
}

func (p *process) signalGroup() {
	pid := p.started()
	if pid == 0 {
		return // 0 would be the host's own group
	}
	if p.off.groupKill {
		_ = unix.Kill(pid, unix.SIGKILL)
		return
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
}

// suicide reports whether an ended process ended by itself.
func (p *process) suicide() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil || !p.killed {
		return true
	}
	w, ok := p.state.Sys().(syscall.WaitStatus)
	return ok && !(w.Signaled() && w.Signal() == syscall.SIGKILL)
}

// abort kills the process, if need be as soon as it is started.
func (p *process) abort() {
	p.mu.Lock()
	p.aborted = true
	p.mu.Unlock()
	p.kill()
}

// started returns the process id, 0 when there is none.
func (p *process) started() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// stop asks a started process to end and kills the group after the grace period.
// It returns when the process is gone.
func (p *process) stop(grace time.Duration) {
	p.stopOnce.Do(func() {
		_ = unix.Kill(p.started(), unix.SIGTERM)
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-p.exited:
		case <-t.C:
			p.kill()
		}
	})
	<-p.exited
}

// how says how the process ended.
func (p *process) how() string {
	if p.state == nil {
		return "unknown"
	}
	return p.state.String()
}

func (p *process) closePipes() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// Wait implements runner.Runner.
func (p *process) Wait(context.Context) error {
	<-p.exited
	if p.state != nil && !p.state.Success() {
		return errors.New(p.how())
	}
	return nil
}

// Kill implements runner.Runner.
func (p *process) Kill(context.Context) error {
	p.kill()
	<-p.exited
	return nil
}

// Diagnose implements runner.Runner.
func (p *process) Diagnose(context.Context) string {
	return fmt.Sprintf("%s wrote no handshake to its standard output: is it a DataLink connector for this platform?", p.name)
}

// Stdout, Stderr, Name, ID and the two translations implement runner.Runner.

func (p *process) Stdout() io.ReadCloser { return p.stdout }
func (p *process) Stderr() io.ReadCloser { return &toEnd{ReadCloser: p.stderr, end: p.silent} }
func (p *process) Name() string          { return p.name }

func (p *process) ID() string { return strconv.Itoa(p.started()) }

func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// toEnd tells when its reader has come to the end.
type toEnd struct {
	io.ReadCloser
	once sync.Once
	end  chan struct{}
}

func (r *toEnd) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil {
		r.once.Do(func() { close(r.end) })
	}
	return n, err
}
