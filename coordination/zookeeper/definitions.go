package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
)

type epochValue struct {
	Epoch uint64 `json:"epoch"`
}

func (s *Store) definition(name string) string    { return s.path("definitions", name) }
func (s *Store) task(uid string) string           { return s.path("tasks", escaped(uid)) }
func (s *Store) epoch(uid string) string          { return s.task(uid) + "/epoch" }
func (s *Store) status(uid string) string         { return s.task(uid) + "/status" }
func (s *Store) journal(uid string) string        { return s.task(uid) + "/journal" }
func (s *Store) progressOf(uid string) string     { return s.task(uid) + "/progress" }
func (s *Store) writer(uid, writer string) string { return s.progressOf(uid) + "/" + escaped(writer) }

func (s *Store) createOp(p string, d []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: p, Data: d, Acl: s.cfg.acl()}
}

// CreateTask implements coordination.Definitions.
func (s *Store) CreateTask(ctx context.Context, d coordination.Definition) (coordination.Definition, error) {
	if err := d.Validate(); err != nil {
		return d, err
	}
	d.UID, d.Version, d.CreatedAt = uuid.NewString(), 1, s.now()
	d.UpdatedAt = d.CreatedAt
	data, err := s.fits(s.definition(d.Name), d)
	if err != nil {
		return coordination.Definition{}, err
	}
	zero, _ := encode("epoch", epochValue{})
	err = s.do(ctx, "create task "+d.Name, func(ctx context.Context, l *link) error {
		_, failed, err := l.multi(ctx, s.createOp(s.definition(d.Name), data), s.createOp(s.task(d.UID), nil), s.createOp(s.epoch(d.UID), zero),
			s.createOp(s.journal(d.UID), nil), s.createOp(s.progressOf(d.UID), nil))
		if failed == 0 && errors.Is(err, zk.ErrNodeExists) {
			var have coordination.Definition
			if ok, _, err := get(ctx, l, s.definition(d.Name), &have); err != nil || ok && have.UID == d.UID {
				return err // ours: the answer had been lost
			}
			return fmt.Errorf("task %q: %w", d.Name, coordination.ErrExists)
		}
		return err
	})
	if err != nil {
		return coordination.Definition{}, err
	}
	return d, nil
}

// decoded makes a definition of its node.
func decoded(name string, r *raw) (coordination.Definition, error) {
	var d coordination.Definition
	if r == nil {
		return d, fmt.Errorf("task %q: %w", name, coordination.ErrNotFound)
	}
	if err := decode("definitions/"+name, r.data, &d); err != nil {
		return d, err
	}
	d.Version = uint64(r.stat.Version) + 1
	return d, nil
}

// Task implements coordination.Definitions.
func (s *Store) Task(ctx context.Context, name string) (d coordination.Definition, err error) {
	err = s.do(ctx, "read task "+name, func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		d, err = s.taskOf(ctx, l, name)
		return err
	})
	return d, err
}

func (s *Store) taskOf(ctx context.Context, l *link, name string) (coordination.Definition, error) {
	n, err := s.mirror.fetch(ctx, l, s.definition(escaped(name)))
	if err != nil {
		return coordination.Definition{}, err
	}
	return decoded(name, n.raw)
}

// Tasks implements coordination.Definitions.
func (s *Store) Tasks(ctx context.Context) (out []coordination.Definition, err error) {
	err = s.do(ctx, "list tasks", func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		out, err = s.tasksOf(ctx, l)
		return err
	})
	return out, err
}

func (s *Store) tasksOf(ctx context.Context, l *link) ([]coordination.Definition, error) {
	n, err := s.mirror.fetch(ctx, l, s.path("definitions")+listing)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(slices.Values(n.children))
	all := make([]coordination.Definition, len(names))
	err = each(len(names), func(i int) error {
		d, err := s.taskOf(ctx, l, names[i])
		if errors.Is(err, coordination.ErrNotFound) {
			return nil // went meanwhile
		}
		all[i] = d
		return err
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(d coordination.Definition) bool { return d.UID == "" })
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// UpdateTask implements coordination.Definitions.
func (s *Store) UpdateTask(ctx context.Context, d coordination.Definition) (coordination.Definition, error) {
	if err := d.Validate(); err != nil {
		return d, err
	}
	given := d.Version
	d.UpdatedAt = s.now()
	err := s.do(ctx, "change task "+d.Name, func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		r, err := read(ctx, l, s.definition(d.Name))
		if err != nil {
			return err
		}
		have, err := decoded(d.Name, r)
		if err != nil {
			return err
		}
		d.UID, d.CreatedAt, d.Version = have.UID, have.CreatedAt, given+1
		data, err := s.fits(s.definition(d.Name), d)
		if err != nil {
			return err
		}
		if have.Version == given+1 && bytes.Equal(r.data, data) {
			return nil // ours: the answer had been lost
		}
		if have.Version != given {
			return &coordination.VersionError{Task: d.Name, Given: given, Have: have.Version}
		}
		_, failed, err := l.multi(ctx, &zk.SetDataRequest{Path: s.definition(d.Name), Data: data, Version: int32(given - 1)})
		if failed == 0 {
			return errLost // changed since it was read: look again
		}
		return err
	})
	if err != nil {
		return coordination.Definition{}, err
	}
	return d, nil
}

// DeleteTask implements coordination.Definitions. Journal and epoch stay.
func (s *Store) DeleteTask(ctx context.Context, name string, version uint64) error {
	gone := "" // uid of what was deleted, the answer may have been lost
	return s.do(ctx, "delete task "+name, func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		r, err := read(ctx, l, s.definition(escaped(name)))
		if err != nil {
			return err
		}
		if r == nil && gone != "" {
			return s.deleteTree(ctx, l, s.progressOf(gone))
		}
		d, err := decoded(name, r)
		if err != nil {
			return err
		}
		if d.Version != version {
			return &coordination.VersionError{Task: name, Given: version, Have: d.Version}
		}
		var st coordination.Status
		held, _, err := get(ctx, l, s.status(d.UID), &st)
		switch {
		case err != nil:
			return err
		case held:
			return &coordination.HeldError{Status: st}
		}
		gone = d.UID
		// A status node that was made meanwhile lets the second operation fail.
		_, failed, err := l.multi(ctx, &zk.DeleteRequest{Path: s.definition(name), Version: int32(version - 1)},
			s.createOp(s.status(d.UID), nil), &zk.DeleteRequest{Path: s.status(d.UID), Version: -1})
		switch {
		case failed >= 0:
			gone = ""
			return errLost // look again
		case err != nil:
			return err
		}
		return s.deleteTree(ctx, l, s.progressOf(d.UID))
	})
}

// deleteTree deletes a node and all below it.
func (s *Store) deleteTree(ctx context.Context, l *link, path string) error {
	names, err := children(ctx, l, path)
	if err != nil {
		return err
	}
	err = each(len(names), func(i int) error { return s.deleteTree(ctx, l, path+"/"+names[i]) })
	if err != nil {
		return err
	}
	_, err = call(ctx, l, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return named(path, err)
}

// Status implements coordination.Definitions.
func (s *Store) Status(ctx context.Context, name string) (st coordination.Status, err error) {
	err = s.do(ctx, "read the status of task "+name, func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		d, err := s.taskOf(ctx, l, name)
		if err != nil {
			return err
		}
		n, err := s.mirror.fetch(ctx, l, s.status(d.UID))
		if err != nil {
			return err
		}
		if n.raw == nil {
			return fmt.Errorf("status of task %q: %w", name, coordination.ErrNotFound)
		}
		st = coordination.Status{}
		return decode("status of "+name, n.raw.data, &st)
	})
	return st, err
}

// Watch implements coordination.Definitions.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	w := &waiter{ch: make(chan struct{})}
	err := s.do(ctx, "watch tasks", func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		if name != "" {
			return s.arm(ctx, l, w, name)
		}
		key := s.path("definitions") + listing
		s.mirror.wait(w, key)
		all, err := s.tasksOf(ctx, l)
		if err != nil {
			return err
		}
		return each(len(all), func(i int) error { return s.arm(ctx, l, w, all[i].Name) })
	})
	if err != nil {
		s.mirror.drop(w)
		return nil, err
	}
	s.hand(ctx, w)
	return w.ch, nil
}

// hand lets a waiter end with its context and with the store.
func (s *Store) hand(ctx context.Context, w *waiter) {
	stop := context.AfterFunc(ctx, func() {
		s.mirror.drop(w)
		w.fire()
	})
	go func() {
		select {
		case <-w.ch:
			stop()
			s.mirror.drop(w)
		case <-s.done:
			w.fire()
		}
	}()
}

// arm leaves watches for one task. Nodes that are not there are watched too.
func (s *Store) arm(ctx context.Context, l *link, w *waiter, name string) error {
	key := s.definition(escaped(name))
	s.mirror.wait(w, key)
	n, err := s.mirror.fetch(ctx, l, key)
	if err != nil || n.raw == nil {
		return err
	}
	d, err := decoded(name, n.raw)
	if err != nil {
		return err
	}
	key = s.status(d.UID)
	s.mirror.wait(w, key)
	_, err = s.mirror.fetch(ctx, l, key)
	return err
}

// fits encodes a value and refuses one that no server accepts.
func (s *Store) fits(path string, v any) ([]byte, error) {
	data, err := encode(path, v)
	if err != nil {
		return nil, err
	}
	return data, s.bounded(path, len(data))
}

func (s *Store) bounded(path string, size int) error {
	const overhead = 1024
	if size+overhead > s.cfg.Limit {
		return fmt.Errorf("%s has %d bytes, the limit of the ZooKeeper servers is %d (jute.maxbuffer): raise it there and in the workers", path, size, s.cfg.Limit)
	}
	return nil
}
