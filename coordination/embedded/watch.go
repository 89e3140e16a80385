package embedded

import (
	"context"
	"sync"
)

// watchers are the channels to close at the next change, by task name.
type watchers struct {
	mu     sync.Mutex
	by     map[string]map[*watcher]struct{}
	closed bool
}

type watcher struct {
	ch   chan struct{}
	once sync.Once
	stop func() bool
}

func (w *watcher) fire() { w.once.Do(func() { close(w.ch) }) }

func (ws *watchers) add(ctx context.Context, name string) <-chan struct{} {
	w := &watcher{ch: make(chan struct{})}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		w.fire()
		return w.ch
	}
	if ws.by == nil {
		ws.by = map[string]map[*watcher]struct{}{}
	}
	if ws.by[name] == nil {
		ws.by[name] = map[*watcher]struct{}{}
	}
	ws.by[name][w] = struct{}{}
	w.stop = context.AfterFunc(ctx, func() {
		ws.mu.Lock()
		delete(ws.by[name], w)
		ws.mu.Unlock()
		w.fire()
	})
	return w.ch
}

// changed fires the watchers of the task and those of all tasks.
func (ws *watchers) changed(name string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, n := range []string{name, ""} {
		for w := range ws.by[n] {
			w.stop()
			w.fire()
		}
		delete(ws.by, n)
	}
}

func (ws *watchers) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	for _, m := range ws.by {
		for w := range m {
			w.stop()
			w.fire()
		}
	}
	ws.by = nil
}
