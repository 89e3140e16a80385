package supervisor

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
)

// ErrLauncherClosed is returned for starts after Close.
var ErrLauncherClosed = errors.New("launcher is closed")

// Launcher starts processes from one thread that lives until Close: the kernel
// sends a child its parent-death signal when the thread that started it ends
// (prctl(2), PR_SET_PDEATHSIG), which for a thread of Go's scheduler may be any
// time. It is safe for concurrent use.
type Launcher struct {
	work   chan func()
	closed chan struct{}
	once   sync.Once
	done   chan struct{}
}

// NewLauncher returns a Launcher.
func NewLauncher() *Launcher {
	l := &Launcher{work: make(chan func()), closed: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for {
			select {
			case f := <-l.work:
				f()
			case <-l.closed:
				return
			}
		}
	}()
	return l
}

// Start starts cmd from the thread.
func (l *Launcher) Start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	select {
	case l.work <- func() { result <- cmd.Start() }:
		return <-result
	case <-l.closed:
		return ErrLauncherClosed
	}
}

// Close ends the thread, and with it every process it started that still runs.
func (l *Launcher) Close() {
	l.once.Do(func() { close(l.closed) })
	<-l.done
}
