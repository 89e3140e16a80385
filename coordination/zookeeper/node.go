package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/go-zookeeper/zk"
)

// path joins parts below the chroot. Parts that come from outside were escaped.
func (s *Store) path(parts ...string) string {
	p := s.cfg.Root
	for _, x := range parts {
		p += "/" + x
	}
	return p
}

// escaped makes a node name of any text; an empty one stays recognizable.
func escaped(text string) string {
	switch text {
	case "", ".", "..":
		return "%" + text
	}
	return url.QueryEscape(text)
}

func unescaped(name string) string {
	switch name {
	case "%", "%.", "%..":
		return name[1:]
	}
	if text, err := url.QueryUnescape(name); err == nil {
		return text
	}
	return name
}

func encode(path string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", path, err)
	}
	return data, nil
}

func decode(path string, data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("node %s is damaged: %w", path, err)
	}
	return nil
}

// named says which node an answer is about.
func named(path string, err error) error {
	switch {
	case err == nil, errors.Is(err, errLost), errors.Is(err, errSession), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("node %s: %w: the user of the store's URL has no right there", path, err)
	}
	return fmt.Errorf("node %s: %w", path, err)
}

type raw struct {
	data []byte
	stat *zk.Stat
}

// read returns a node, nil where there is none.
func read(ctx context.Context, l *link, path string) (*raw, error) {
	r, err := call(ctx, l, func(c *zk.Conn) (*raw, error) {
		data, stat, err := c.Get(path)
		return &raw{data, stat}, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, named(path, err)
	}
	return r, nil
}

// get decodes a node into v and reports whether it is there.
func get(ctx context.Context, l *link, path string, v any) (bool, *zk.Stat, error) {
	r, err := read(ctx, l, path)
	if err != nil || r == nil {
		return false, nil, err
	}
	return true, r.stat, decode(path, r.data, v)
}

// children lists the names below a node; none where it is not there.
func children(ctx context.Context, l *link, path string) ([]string, error) {
	names, err := call(ctx, l, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(path)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, named(path, err)
}

// inFlight is how many requests of one listing wait for their answers at a time.
const inFlight = 32

// each runs f for 0 … n−1, several at a time, and returns the first error.
func each(n int, f func(i int) error) error {
	if n == 0 {
		return nil
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	next := 0
	for range min(n, inFlight) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := i >= n || first != nil
				mu.Unlock()
				if stop {
					return
				}
				if err := f(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}

// list reads the nodes of that names below a folder; those that went meanwhile are
// left out.
func list[T any](ctx context.Context, l *link, folder string, names []string, note func(v *T, stat *zk.Stat)) ([]T, error) {
	found := make([]*T, len(names))
	err := each(len(names), func(i int) error {
		var v T
		ok, stat, err := get(ctx, l, folder+"/"+names[i], &v)
		if err != nil || !ok {
			return err
		}
		if note != nil {
			note(&v, stat)
		}
		found[i] = &v
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []T
	for _, v := range found {
		if v != nil {
			out = append(out, *v)
		}
	}
	return out, nil
}
