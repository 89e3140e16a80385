package zookeeper

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
)

// mirror is what the store's connection has read with a watch, and who waits for
// changes. A copy is good until an event about its path, or any loss of the
// connection; events come in order with answers, so that after a sync no copy is
// older than what was committed before it.
type mirror struct {
	mu     sync.Mutex
	nodes  map[string]*mirrored
	gen    map[string]uint64 // events about a path; absent = 0
	epoch  uint64            // resets
	waits  map[string]map[*waiter]struct{}
	closed bool
}

type mirrored struct {
	raw      *raw // nil = no such node
	children []string
}

type waiter struct {
	ch   chan struct{}
	once sync.Once
}

func (w *waiter) fire() { w.once.Do(func() { close(w.ch) }) }

func newMirror() *mirror {
	return &mirror{nodes: map[string]*mirrored{}, gen: map[string]uint64{}, waits: map[string]map[*waiter]struct{}{}}
}

// Keys of children lists end so.
const listing = "/*"

// changed is called with the path of a node that has changed in value, being or
// children.
func (m *mirror) changed(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range []string{path, path + listing} {
		m.gen[key]++
		delete(m.nodes, key)
		for w := range m.waits[key] {
			w.fire()
		}
		delete(m.waits, key)
	}
}

// reset forgets all copies and wakes everybody: the connection was lost or is back.
func (m *mirror) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	m.nodes, m.gen = map[string]*mirrored{}, map[string]uint64{}
	m.fireAll()
}

func (m *mirror) fireAll() {
	for _, ws := range m.waits {
		for w := range ws {
			w.fire()
		}
	}
	m.waits = map[string]map[*waiter]struct{}{}
}

func (m *mirror) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.fireAll()
}

// wait registers for a change of any of the keys. It comes before they are read.
func (m *mirror) wait(w *waiter, keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		w.fire()
		return
	}
	for _, k := range keys {
		if m.waits[k] == nil {
			m.waits[k] = map[*waiter]struct{}{}
		}
		m.waits[k][w] = struct{}{}
	}
}

// drop forgets a waiter.
func (m *mirror) drop(w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, ws := range m.waits {
		if _, ok := ws[w]; ok {
			delete(ws, w)
			if len(ws) == 0 {
				delete(m.waits, k)
			}
		}
	}
}

// fetch returns the copy for key, or reads it with a watch.
func (m *mirror) fetch(ctx context.Context, l *link, key string) (*mirrored, error) {
	m.mu.Lock()
	if n, ok := m.nodes[key]; ok {
		m.mu.Unlock()
		return n, nil
	}
	gen, epoch := m.gen[key], m.epoch
	m.mu.Unlock()
	n, err := watched(ctx, l, key)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	if m.gen[key] == gen && m.epoch == epoch {
		m.nodes[key] = n
	}
	m.mu.Unlock()
	return n, nil
}

// watched reads a node or a list of children and leaves a watch.
func watched(ctx context.Context, l *link, key string) (*mirrored, error) {
	if path, ok := strings.CutSuffix(key, listing); ok {
		names, err := call(ctx, l, func(c *zk.Conn) ([]string, error) {
			names, _, _, err := c.ChildrenW(path)
			return names, err
		})
		return &mirrored{children: names}, named(path, err)
	}
	for {
		r, err := call(ctx, l, func(c *zk.Conn) (*raw, error) {
			data, stat, _, err := c.GetW(key)
			return &raw{data, stat}, err
		})
		if !errors.Is(err, zk.ErrNoNode) {
			return &mirrored{raw: r}, named(key, err)
		}
		there, err := call(ctx, l, func(c *zk.Conn) (bool, error) {
			there, _, _, err := c.ExistsW(key)
			return there, err
		})
		if err != nil || !there {
			return &mirrored{}, named(key, err)
		}
	}
}
