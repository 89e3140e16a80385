package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/datalink-go/datalink/coordination"
)

var (
	_ coordination.Board     = (*Store)(nil)
	_ coordination.Candidate = (*Session)(nil)
)

func (s *Store) folder(name string) string       { return s.path("board", escaped(name)) }
func (s *Store) note(folder, name string) string { return s.folder(folder) + "/" + escaped(name) }

// Notes implements coordination.Board.
func (s *Store) Notes(ctx context.Context, folder string) (out []coordination.Note, err error) {
	err = s.do(ctx, "read the notes of "+folder, func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		names, err := s.mirror.names(ctx, l, s.folder(folder))
		if err != nil {
			return err
		}
		all := make([]coordination.Note, len(names))
		err = each(len(names), func(i int) error {
			n, err := s.mirror.fetch(ctx, l, s.folder(folder)+"/"+names[i])
			if err == nil && n.raw != nil {
				all[i] = coordination.Note{Name: unescaped(names[i]), Value: slices.Clone(n.raw.data)}
			}
			return err
		})
		out = slices.DeleteFunc(all, func(n coordination.Note) bool { return n.Name == "" })
		slices.SortFunc(out, func(a, b coordination.Note) int { return strings.Compare(a.Name, b.Name) })
		return err
	})
	return out, err
}

// Note implements coordination.Board.
func (s *Store) Note(ctx context.Context, folder, name string) (out []byte, err error) {
	err = s.do(ctx, "read note "+folder+"/"+name, func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		n, err := s.mirror.fetch(ctx, l, s.note(folder, name))
		if err == nil && n.raw != nil {
			out = slices.Clone(n.raw.data)
		}
		return err
	})
	return out, err
}

// names lists a folder, which need not be there, with a watch.
func (m *mirror) names(ctx context.Context, l *link, folder string) ([]string, error) {
	n, err := m.fetch(ctx, l, folder+listing)
	if !errors.Is(err, zk.ErrNoNode) {
		if err != nil {
			return nil, err
		}
		return n.children, nil
	}
	if n, err = m.fetch(ctx, l, folder); err != nil || n.raw == nil {
		return nil, err
	}
	return m.names(ctx, l, folder)
}

// Put implements coordination.Board.
func (s *Store) Put(ctx context.Context, folder, name string, value []byte) error {
	path := s.note(folder, name)
	if err := s.bounded(path, len(value)); err != nil {
		return err
	}
	return s.do(ctx, "put note "+folder+"/"+name, func(ctx context.Context, l *link) error {
		for {
			_, err := call(ctx, l, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(path, value, -1) })
			if !errors.Is(err, zk.ErrNoNode) {
				return named(path, err)
			}
			_, err = call(ctx, l, func(c *zk.Conn) (string, error) { return c.Create(path, value, 0, s.cfg.acl()) })
			switch {
			case errors.Is(err, zk.ErrNodeExists):
				continue
			case !errors.Is(err, zk.ErrNoNode):
				return named(path, err)
			}
			if err := s.makeFolder(ctx, l, folder); err != nil {
				return err
			}
		}
	})
}

func (s *Store) makeFolder(ctx context.Context, l *link, folder string) error {
	_, err := call(ctx, l, func(c *zk.Conn) (string, error) { return c.Create(s.folder(folder), nil, 0, s.cfg.acl()) })
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return named(s.folder(folder), err)
}

// Remove implements coordination.Board.
func (s *Store) Remove(ctx context.Context, folder, name string) error {
	path := s.note(folder, name)
	return s.do(ctx, "remove note "+folder+"/"+name, func(ctx context.Context, l *link) error {
		_, err := call(ctx, l, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return named(path, err)
	})
}

// Some implements coordination.Board.
func (s *Store) Some(ctx context.Context, names []string) (out []coordination.Definition, err error) {
	err = s.do(ctx, "read tasks", func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		all := make([]coordination.Definition, len(names))
		err := each(len(names), func(i int) error {
			d, err := s.taskOf(ctx, l, names[i])
			if errors.Is(err, coordination.ErrNotFound) {
				return nil
			}
			all[i] = d
			return err
		})
		out = slices.DeleteFunc(all, func(d coordination.Definition) bool { return d.UID == "" })
		return err
	})
	return out, err
}

// Changes implements coordination.Board.
func (s *Store) Changes(ctx context.Context, topics ...coordination.Topic) (<-chan struct{}, error) {
	w := &waiter{ch: make(chan struct{})}
	err := s.do(ctx, "watch the board", func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		return each(len(topics), func(i int) error { return s.armTopic(ctx, l, w, topics[i]) })
	})
	if err != nil {
		s.mirror.drop(w)
		return nil, err
	}
	s.hand(ctx, w)
	return w.ch, nil
}

func (s *Store) armTopic(ctx context.Context, l *link, w *waiter, t coordination.Topic) error {
	var keys []string
	switch {
	case t == coordination.Members:
		keys = []string{s.path("workers") + listing}
	case t == coordination.TasksByName:
		keys = []string{s.path("definitions") + listing}
	case t == coordination.AllTasks:
		s.mirror.wait(w, s.path("definitions")+listing)
		all, err := s.tasksOf(ctx, l)
		if err != nil {
			return err
		}
		for _, d := range all {
			keys = append(keys, s.definition(d.Name))
		}
	case t.Task != "":
		keys = []string{s.definition(escaped(t.Task))}
	case t.Note != "":
		keys = []string{s.note(t.Folder, t.Note)}
	default:
		s.mirror.wait(w, s.folder(t.Folder)+listing, s.folder(t.Folder))
		_, err := s.mirror.names(ctx, l, s.folder(t.Folder))
		return err
	}
	s.mirror.wait(w, keys...)
	return each(len(keys), func(i int) error {
		_, err := s.mirror.fetch(ctx, l, keys[i])
		return err
	})
}

// Campaign implements coordination.Candidate.
func (x *Session) Campaign(ctx context.Context) (term uint64, err error) {
	s := x.store
	now, at := s.note(coordination.LeaderFolder, coordination.LeaderNote), s.note(coordination.LeaderFolder, "term")
	err = x.do(ctx, "campaign", func(ctx context.Context) error {
		for {
			if err := x.link.sync(ctx); err != nil {
				return err
			}
			var have coordination.Leader
			ok, stat, err := get(ctx, x.link, now, &have)
			switch {
			case err != nil:
				return err
			case ok && stat.EphemeralOwner == x.link.session():
				term = have.Term
				return nil
			case ok:
				return fmt.Errorf("worker %q leads: %w", have.Worker, coordination.ErrHeld)
			}
			var last coordination.Leader
			ok, stat, err = get(ctx, x.link, at, &last)
			if err != nil {
				return err
			}
			if !ok {
				zero, _ := encode(at, last)
				if err := s.once(ctx, x.link, zero, s.folder(coordination.LeaderFolder), at); err != nil {
					return err
				}
				continue
			}
			term = last.Term + 1
			value, err := encode(now, coordination.Leader{Worker: x.worker.ID, Term: term})
			if err != nil {
				return err
			}
			node := s.createOp(now, value)
			node.Flags = zk.FlagEphemeral
			_, failed, err := x.link.multi(ctx, &zk.SetDataRequest{Path: at, Data: value, Version: stat.Version}, node)
			if failed < 0 {
				return err
			}
		}
	})
	return term, err
}

// PutAs implements coordination.Candidate. The term's node is moved by each
// election: its value is checked at its version.
func (x *Session) PutAs(ctx context.Context, term uint64, folder string, notes map[string][]byte) error {
	s := x.store
	at := s.note(coordination.LeaderFolder, "term")
	return x.do(ctx, "put notes as the leader", func(ctx context.Context) error {
		for first := true; ; first = false {
			var last coordination.Leader
			ok, stat, err := get(ctx, x.link, at, &last)
			if err != nil {
				return err
			}
			if !ok || last.Term != term || last.Worker != x.worker.ID {
				return fmt.Errorf("worker %q leads in term %d, not %q in term %d: %w", last.Worker, last.Term, x.worker.ID, term, coordination.ErrFenced)
			}
			if first {
				if err := s.makeFolder(ctx, x.link, folder); err != nil {
					return err
				}
			}
			names, err := children(ctx, x.link, s.folder(folder))
			if err != nil {
				return err
			}
			ops := []any{&zk.CheckVersionRequest{Path: at, Version: stat.Version}}
			for name, value := range notes {
				path := s.note(folder, name)
				if err := s.bounded(path, len(value)); err != nil {
					return err
				}
				switch there := slices.Contains(names, escaped(name)); {
				case there && value == nil:
					ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
				case there:
					ops = append(ops, &zk.SetDataRequest{Path: path, Data: value, Version: -1})
				case value != nil:
					ops = append(ops, s.createOp(path, value))
				}
			}
			_, failed, err := x.link.multi(ctx, ops...)
			if failed < 0 {
				return err
			}
		}
	})
}

// Offer implements coordination.Candidate.
func (x *Session) Offer(ctx context.Context, folder, name string, value []byte) error {
	s := x.store
	path := s.note(folder, name)
	if err := s.bounded(path, len(value)); err != nil {
		return err
	}
	return x.do(ctx, "offer note "+folder+"/"+name, func(ctx context.Context) error {
		for {
			node := s.createOp(path, value)
			node.Flags = zk.FlagEphemeral
			_, _, err := x.link.multi(ctx, node)
			switch {
			case err == nil:
				return nil
			case errors.Is(err, zk.ErrNoNode):
				if err := s.makeFolder(ctx, x.link, folder); err != nil {
					return err
				}
				continue
			case !errors.Is(err, zk.ErrNodeExists):
				return named(path, err)
			}
			r, err := read(ctx, x.link, path)
			if err != nil {
				return err
			}
			if r == nil {
				continue
			}
			if r.stat.EphemeralOwner != x.link.session() {
				return fmt.Errorf("note %s/%s: %w, of another session", folder, name, coordination.ErrExists)
			}
			_, failed, err := x.link.multi(ctx, &zk.SetDataRequest{Path: path, Data: value, Version: r.stat.Version})
			if failed < 0 {
				return err
			}
		}
	})
}
