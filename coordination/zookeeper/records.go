package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/datalink-go/datalink/coordination"
)

// entryName is a node name below a journal. The first of a kind stays; raised may
// come often.
func entryName(e *coordination.Entry) string {
	name := escaped(e.ExecutionID) + "-" + string(e.Kind)
	if e.Kind == coordination.EntryRaised {
		name += "-" + strconv.FormatUint(e.Epoch, 10)
	}
	return name
}

// Append implements coordination.Records.
func (s *Store) Append(ctx context.Context, e coordination.Entry) error {
	switch e.Kind {
	case coordination.EntryEnded, coordination.EntryLost, coordination.EntryDead:
	default:
		return fmt.Errorf("append %q to the journal: %w kind, expected ended, lost or dead", e.Kind, coordination.ErrInvalid)
	}
	if e.ExecutionID == "" || e.TaskUID == "" {
		return fmt.Errorf("journal entry %q without an execution: %w", e.Kind, coordination.ErrInvalid)
	}
	if e.At.IsZero() {
		e.At = s.now()
	}
	path := s.journal(e.TaskUID) + "/" + entryName(&e)
	data, err := s.fits(path, e)
	if err != nil {
		return err
	}
	return s.do(ctx, "append to the journal", func(ctx context.Context, l *link) error {
		return s.once(ctx, l, data, s.task(e.TaskUID), s.journal(e.TaskUID), path)
	})
}

// once creates the last of the paths with its folders. One that is there stays.
func (s *Store) once(ctx context.Context, l *link, data []byte, paths ...string) error {
	path := paths[len(paths)-1]
	for first := true; ; first = false {
		_, _, err := l.multi(ctx, s.createOp(path, data))
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return nil
		case !errors.Is(err, zk.ErrNoNode) || !first:
			return named(path, err)
		}
		for _, p := range paths[:len(paths)-1] {
			if _, _, err := l.multi(ctx, s.createOp(p, nil)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return named(p, err)
			}
		}
	}
}

// Journal implements coordination.Records. The order is that of the nodes' creation.
func (s *Store) Journal(ctx context.Context, taskUID string) (out []coordination.Entry, err error) {
	err = s.do(ctx, "read the journal", func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		names, err := children(ctx, l, s.journal(taskUID))
		if err != nil {
			return err
		}
		out, err = list(ctx, l, s.journal(taskUID), names, func(e *coordination.Entry, stat *zk.Stat) { e.Seq = uint64(stat.Czxid) })
		return err
	})
	slices.SortFunc(out, func(a, b coordination.Entry) int { return int(int64(a.Seq) - int64(b.Seq)) })
	return out, err
}

// AddOverlap implements coordination.Records.
func (s *Store) AddOverlap(ctx context.Context, o coordination.Overlap) error {
	if o.ID == "" {
		return fmt.Errorf("overlap record without an id: %w", coordination.ErrInvalid)
	}
	o.Resolutions = nil
	path := s.path("overlaps", escaped(o.ID))
	data, err := s.fits(path, o)
	if err != nil {
		return err
	}
	return s.do(ctx, "record overlap "+o.ID, func(ctx context.Context, l *link) error { return s.once(ctx, l, data, path) })
}

// Resolve implements coordination.Records.
func (s *Store) Resolve(ctx context.Context, overlapID string, r coordination.Resolution) error {
	if r.ID == "" {
		return fmt.Errorf("resolution of overlap %s without an id: %w", overlapID, coordination.ErrInvalid)
	}
	path := s.path("overlaps", escaped(overlapID), escaped(r.ID))
	data, err := s.fits(path, r)
	if err != nil {
		return err
	}
	return s.do(ctx, "resolve overlap "+overlapID, func(ctx context.Context, l *link) error {
		_, _, err := l.multi(ctx, s.createOp(path, data))
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			return fmt.Errorf("overlap %q: %w", overlapID, coordination.ErrNotFound)
		}
		return named(path, err)
	})
}

func (s *Store) overlap(ctx context.Context, l *link, name string) (*coordination.Overlap, error) {
	path := s.path("overlaps", name)
	var o coordination.Overlap
	ok, stat, err := get(ctx, l, path, &o)
	if err != nil || !ok {
		return nil, err
	}
	if stat.NumChildren == 0 {
		return &o, nil
	}
	names, err := children(ctx, l, path)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	o.Resolutions, err = list[coordination.Resolution](ctx, l, path, names, nil)
	return &o, err
}

// Overlaps implements coordination.Records.
func (s *Store) Overlaps(ctx context.Context) (out []coordination.Overlap, err error) {
	err = s.do(ctx, "list overlaps", func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		names, err := children(ctx, l, s.path("overlaps"))
		if err != nil {
			return err
		}
		slices.Sort(names)
		found := make([]*coordination.Overlap, len(names))
		err = each(len(names), func(i int) (err error) {
			found[i], err = s.overlap(ctx, l, names[i])
			return err
		})
		out = nil
		for _, o := range found {
			if o != nil {
				out = append(out, *o)
			}
		}
		return err
	})
	slices.SortStableFunc(out, func(a, b coordination.Overlap) int { return a.At.Compare(b.At) })
	return out, err
}

// Overlap implements coordination.Records.
func (s *Store) Overlap(ctx context.Context, id string) (out coordination.Overlap, err error) {
	err = s.do(ctx, "read overlap "+id, func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		o, err := s.overlap(ctx, l, escaped(id))
		if err != nil {
			return err
		}
		if o == nil {
			return fmt.Errorf("overlap %q: %w", id, coordination.ErrNotFound)
		}
		out = *o
		return nil
	})
	return out, err
}

// Workers implements coordination.Records.
func (s *Store) Workers(ctx context.Context) (out []coordination.Worker, err error) {
	err = s.do(ctx, "list workers", func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		names, err := children(ctx, l, s.path("workers"))
		if err != nil {
			return err
		}
		slices.Sort(names)
		out, err = list[coordination.Worker](ctx, l, s.path("workers"), names, nil)
		return err
	})
	slices.SortFunc(out, func(a, b coordination.Worker) int { return strings.Compare(a.ID, b.ID) })
	return out, err
}

// Forget implements coordination.Records.
func (s *Store) Forget(ctx context.Context, f coordination.Forgotten) error {
	if f.Worker == "" {
		return fmt.Errorf("forget a worker without an id: %w", coordination.ErrInvalid)
	}
	if f.At.IsZero() {
		f.At = s.now()
	}
	path := s.path("forgotten", fmt.Sprintf("%020d-%s", f.At.UnixNano(), escaped(f.Worker)))
	data, err := s.fits(path, f)
	if err != nil {
		return err
	}
	return s.do(ctx, "forget worker "+f.Worker, func(ctx context.Context, l *link) error { return s.once(ctx, l, data, path) })
}

// Forgotten implements coordination.Records.
func (s *Store) Forgotten(ctx context.Context) (out []coordination.Forgotten, err error) {
	err = s.do(ctx, "list forgotten workers", func(ctx context.Context, l *link) error {
		if err := l.sync(ctx); err != nil {
			return err
		}
		names, err := children(ctx, l, s.path("forgotten"))
		if err != nil {
			return err
		}
		slices.Sort(names)
		out, err = list[coordination.Forgotten](ctx, l, s.path("forgotten"), names, nil)
		return err
	})
	return out, err
}
