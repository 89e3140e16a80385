package wasmrt

import (
	"log/slog"
	"runtime"
	"sync"
)

// Runtime starts the children of all modules. It is safe for concurrent use.
type Runtime struct {
	cfg  Config
	jobs chan func() // run by the one thread whose death is the children's death
	done chan struct{}

	mu      sync.Mutex
	modules map[*Module]struct{}
	closed  bool
}

// New makes a Runtime.
func New(cfg Config) (*Runtime, error) {
	if cfg.CacheDir != "" {
		if err := cacheDir(cfg.CacheDir); err != nil {
			return nil, err
		}
	}
	if cfg.Exec == "" {
		cfg.Exec = self
	}
	if len(cfg.Args) == 0 {
		cfg.Args = []string{ChildArg}
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	r := &Runtime{cfg: cfg, jobs: make(chan func()), done: make(chan struct{}), modules: map[*Module]struct{}{}}
	go r.start()
	return r, nil
}

// start runs jobs on one thread that lives as long as the Runtime: the kernel
// sends the parent-death signal when the thread that started a child ends.
func (r *Runtime) start() {
	defer close(r.done)
	runtime.LockOSThread()
	for job := range r.jobs {
		job()
	}
}

// onThread runs f on the starting thread.
func (r *Runtime) onThread(f func()) {
	done := make(chan struct{})
	r.jobs <- func() { defer close(done); f() }
	<-done
}

// Close ends all modules. It is idempotent.
func (r *Runtime) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	all := make([]*Module, 0, len(r.modules))
	for m := range r.modules {
		all = append(all, m)
	}
	r.mu.Unlock()
	for _, m := range all {
		m.end()
	}
	close(r.jobs)
	<-r.done
	return nil
}
