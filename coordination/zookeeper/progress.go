package zookeeper

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/datalink-go/datalink/coordination"
)

// Prefixes of the nodes below a writer's progress.
const (
	itemPrefix = "item-"
	deadPrefix = "dead-"
)

func itemName(key string) string { return itemPrefix + escaped(key) }
func deadName(n uint64) string   { return fmt.Sprintf(deadPrefix+"%020d", n) }

// Progress implements coordination.Definitions.
func (s *Store) Progress(ctx context.Context, taskUID, writer string) (p coordination.Progress, err error) {
	err = s.do(ctx, "read the progress of writer "+writer, func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		p, err = s.whole(ctx, l, taskUID, writer)
		return err
	})
	return p, err
}

// whole reads head and lists of one step: each step moves the head.
func (s *Store) whole(ctx context.Context, l *link, taskUID, writer string) (coordination.Progress, error) {
	path := s.writer(taskUID, writer)
	for {
		p := coordination.Progress{Writer: writer}
		ok, stat, err := get(ctx, l, path, &p)
		if err != nil || !ok {
			return p, err
		}
		if stat.NumChildren > 0 {
			if err := s.lists(ctx, l, path, &p); err != nil {
				return p, err
			}
		}
		after, err := read(ctx, l, path)
		if err != nil {
			return p, err
		}
		if after != nil && after.stat.Version == stat.Version && after.stat.Czxid == stat.Czxid {
			return p, nil
		}
	}
}

func (s *Store) lists(ctx context.Context, l *link, path string, p *coordination.Progress) error {
	names, err := children(ctx, l, path)
	if err != nil {
		return err
	}
	var items, letters []string
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, itemPrefix):
			items = append(items, n)
		case strings.HasPrefix(n, deadPrefix):
			letters = append(letters, n)
		}
	}
	if p.Items, err = list[coordination.Item](ctx, l, path, items, nil); err != nil {
		return err
	}
	slices.SortFunc(p.Items, func(a, b coordination.Item) int { return cmp.Compare(a.Key, b.Key) })
	p.DeadLetters, err = list[coordination.DeadLetter](ctx, l, path, letters, nil)
	slices.SortFunc(p.DeadLetters, func(a, b coordination.DeadLetter) int { return cmp.Compare(a.Number, b.Number) })
	return err
}

// Writers implements coordination.Definitions.
func (s *Store) Writers(ctx context.Context, taskUID string) (out []string, err error) {
	err = s.do(ctx, "list writers", func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		out, err = s.writersOf(ctx, l, taskUID)
		return err
	})
	return out, err
}

func (s *Store) writersOf(ctx context.Context, l *link, taskUID string) (out []string, err error) {
	names, err := children(ctx, l, s.progressOf(taskUID))
	for _, n := range names {
		out = append(out, unescaped(n))
	}
	slices.Sort(out)
	return out, err
}

// marks are the positions that the store knows of.
func (s *Store) marks(ctx context.Context, l *link, taskUID string) ([]coordination.Mark, error) {
	writers, err := s.writersOf(ctx, l, taskUID)
	if err != nil {
		return nil, err
	}
	var out []coordination.Mark
	for _, w := range writers {
		var p coordination.Progress
		if _, _, err := get(ctx, l, s.writer(taskUID, w), &p); err != nil {
			return nil, err
		}
		for _, x := range p.Points {
			out = append(out, coordination.Mark{Writer: w, Lane: x.Lane, Position: x.Position})
		}
	}
	return out, nil
}

// kept is what a session knows of a writer's nodes, which only the owner changes.
type kept struct {
	there   bool // the head
	version int32
	head    coordination.Progress
	names   map[string]bool // of the nodes below
}

func (s *Store) keptOf(ctx context.Context, l *link, taskUID, writer string) (*kept, error) {
	k := &kept{names: map[string]bool{}}
	path := s.writer(taskUID, writer)
	ok, stat, err := get(ctx, l, path, &k.head)
	if err != nil || !ok {
		return k, err
	}
	k.there, k.version = true, stat.Version
	names, err := children(ctx, l, path)
	for _, n := range names {
		k.names[n] = true
	}
	return k, err
}

// step turns a step into operations on the nodes as they are known, and says what
// is known after them.
func (s *Store) step(k *kept, path string, st coordination.Step, o coordination.Owner) ([]any, *kept, error) {
	next := &kept{there: true, version: k.version + 1, head: k.head, names: map[string]bool{}}
	if !k.there {
		next.version = 0
	}
	for n := range k.names {
		next.names[n] = true
	}
	next.head.Points = slices.DeleteFunc(slices.Clone(k.head.Points), func(p coordination.Point) bool { return st.Lanes > 0 && p.Lane >= st.Lanes })
	for _, p := range st.Points {
		if p.Lane < -1 {
			return nil, nil, fmt.Errorf("lane %d of writer %q: %w", p.Lane, st.Writer, coordination.ErrInvalid)
		}
		at, found := slices.BinarySearchFunc(next.head.Points, p.Lane, func(x coordination.Point, lane int32) int { return cmp.Compare(x.Lane, lane) })
		if found {
			next.head.Points[at] = p
		} else {
			next.head.Points = slices.Insert(next.head.Points, at, p)
		}
	}
	next.head.Writer, next.head.Execution, next.head.Epoch = st.Writer, o.ExecutionID, o.Epoch
	next.head.UpdatedAt, next.head.Ceiling = s.now(), max(k.head.Ceiling, st.Ceiling)
	var ops []any
	size := 0
	put := func(name string, v any) error {
		p := path
		if name != "" {
			p += "/" + name
		}
		data, err := s.fits(p, v)
		if err != nil {
			return err
		}
		if size += len(data) + len(p) + 64; size > s.cfg.Limit {
			return s.bounded("one step of writer "+st.Writer+" with "+p, size)
		}
		switch {
		case name == "" && k.there:
			ops = append(ops, &zk.SetDataRequest{Path: p, Data: data, Version: k.version})
		case name != "" && next.names[name]:
			ops = append(ops, &zk.SetDataRequest{Path: p, Data: data, Version: -1})
		default:
			ops = append(ops, s.createOp(p, data))
		}
		if name != "" {
			next.names[name] = true
		}
		return nil
	}
	drop := func(name string) {
		if next.names[name] {
			ops = append(ops, &zk.DeleteRequest{Path: path + "/" + name, Version: -1})
			delete(next.names, name)
		}
	}
	if err := put("", next.head); err != nil {
		return nil, nil, err
	}
	for _, it := range st.Items {
		name := itemName(it.Key)
		if it.Deleted {
			drop(name)
		} else if err := put(name, it); err != nil {
			return nil, nil, err
		}
	}
	for _, d := range st.SetAside {
		name := deadName(d.Number)
		if next.names[name] {
			continue
		}
		if err := put(name, d); err != nil {
			return nil, nil, fmt.Errorf("dead letter %s of table %s: %w", strconv.FormatUint(d.Number, 10), d.Table, err)
		}
	}
	for _, n := range st.Dropped {
		drop(deadName(n))
	}
	return ops, next, nil
}
