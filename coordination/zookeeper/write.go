package zookeeper

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/datalink-go/datalink/coordination"
)

// edit is what a conditional write does, made for the nodes as they are known.
type edit struct {
	status *coordination.Status // the new one; nil = it stays
	raise  uint64               // the new epoch; 0 = it stays
	ops    []any
	done   func() // after it took effect
}

// owned runs a conditional write: a multi that begins with the condition. Make is
// called again when something changed or an answer was lost; fresh says that
// everything is to be read anew.
func (x *Session) owned(ctx context.Context, op string, o coordination.Owner, make func(ctx context.Context, h *held, fresh bool) (*edit, error)) error {
	return x.do(ctx, op, func(ctx context.Context) error {
		unlock, err := x.lock(ctx, o.TaskUID)
		if err != nil {
			return err
		}
		defer unlock()
		fresh := false
		for {
			h := x.knows(o.TaskUID)
			if fresh || h == nil || !matches(h, o) {
				fresh = true
				if h, err = x.find(ctx, op, o); err != nil {
					return err
				}
			}
			e, err := make(ctx, h, fresh)
			if err != nil {
				return err
			}
			if e == nil {
				return nil
			}
			failed, err := x.apply(ctx, h, e)
			switch {
			case err == nil:
				if e.done != nil {
					e.done()
				}
				return nil
			case failed >= 0:
				if fresh && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNodeExists) {
					return named(x.store.task(o.TaskUID), err)
				}
				fresh = true // not as it was known: look, and be refused or try again
				if ctx.Err() != nil {
					return ctx.Err()
				}
			default:
				x.remember(o.TaskUID, nil)
				return err
			}
		}
	})
}

func matches(h *held, o coordination.Owner) bool {
	return h.status.ExecutionID == o.ExecutionID && h.status.Epoch == o.Epoch
}

// find reads the status node and refuses who does not own it.
func (x *Session) find(ctx context.Context, op string, o coordination.Owner) (*held, error) {
	if err := x.link.sync(ctx); err != nil {
		return nil, err
	}
	f, err := look(ctx, x.store, x.link, o.TaskUID)
	if err != nil {
		return nil, err
	}
	if f.status == nil || f.eStat == nil || f.sStat.EphemeralOwner != x.link.session() ||
		f.status.ExecutionID != o.ExecutionID || f.status.Epoch != o.Epoch {
		return nil, &coordination.FencedError{Op: op, Owner: o, Found: f.status}
	}
	h := &held{status: *f.status, version: f.sStat.Version, epoch: f.eStat.Version}
	x.remember(o.TaskUID, h)
	return h, nil
}

// apply sends the condition and the edit as one, and remembers what is then.
func (x *Session) apply(ctx context.Context, h *held, e *edit) (failed int, err error) {
	s, uid := x.store, h.status.TaskUID
	next := *h
	var ops []any
	if e.raise == 0 {
		ops = append(ops, &zk.CheckVersionRequest{Path: s.epoch(uid), Version: h.epoch})
	} else {
		data, err := encode("epoch", epochValue{e.raise})
		if err != nil {
			return -1, err
		}
		ops = append(ops, &zk.SetDataRequest{Path: s.epoch(uid), Data: data, Version: h.epoch})
		next.epoch++
	}
	if e.status == nil {
		ops = append(ops, &zk.CheckVersionRequest{Path: s.status(uid), Version: h.version})
	} else {
		data, err := s.fits(s.status(uid), e.status)
		if err != nil {
			return -1, err
		}
		ops = append(ops, &zk.SetDataRequest{Path: s.status(uid), Data: data, Version: h.version})
		next.status = *e.status
		next.version++
	}
	_, failed, err = x.link.multi(ctx, append(ops, e.ops...)...)
	if err == nil {
		x.remember(uid, &next)
	}
	return failed, err
}

// Raise implements coordination.Session.
func (x *Session) Raise(ctx context.Context, o coordination.Owner, least uint64) (coordination.Status, error) {
	var out coordination.Status
	tried := map[uint64]bool{}
	err := x.owned(ctx, "raise the epoch", o, func(ctx context.Context, h *held, _ bool) (*edit, error) {
		var have epochValue
		if _, _, err := get(ctx, x.link, x.store.epoch(o.TaskUID), &have); err != nil {
			return nil, err
		}
		out = h.status
		var err error
		if out.Epoch, err = above(have.Epoch, least); err != nil {
			return nil, err
		}
		tried[out.Epoch] = true
		entry := coordination.Entry{
			Kind: coordination.EntryRaised, Task: out.Task, TaskUID: out.TaskUID, ExecutionID: out.ExecutionID, Epoch: out.Epoch, At: x.store.now(),
		}
		path := x.store.journal(o.TaskUID) + "/" + entryName(&entry)
		data, err := x.store.fits(path, entry)
		if err != nil {
			return nil, err
		}
		return &edit{status: &out, raise: out.Epoch, ops: []any{x.store.createOp(path, data)}}, nil
	})
	var fenced *coordination.FencedError
	if errors.As(err, &fenced) && fenced.Found != nil && fenced.Found.ExecutionID == o.ExecutionID && fenced.Found.Session == x.id && tried[fenced.Found.Epoch] {
		return *fenced.Found, nil // it had happened: the answer was lost
	}
	if err != nil {
		return coordination.Status{}, err
	}
	return out, nil
}

// SetState implements coordination.Session.
func (x *Session) SetState(ctx context.Context, o coordination.Owner, state, reason string) error {
	return x.owned(ctx, "set the state", o, func(_ context.Context, h *held, _ bool) (*edit, error) {
		st := h.status
		if st.State == state && st.Reason == reason {
			return &edit{}, nil // the condition alone
		}
		st.State, st.Reason = state, reason
		return &edit{status: &st}, nil
	})
}

// Save implements coordination.Session.
func (x *Session) Save(ctx context.Context, o coordination.Owner, step coordination.Step) error {
	path := x.store.writer(o.TaskUID, step.Writer)
	return x.owned(ctx, "save progress", o, func(ctx context.Context, h *held, fresh bool) (*edit, error) {
		key := h.status.ExecutionID + " " + path
		x.mu.Lock()
		k := x.kept[key]
		x.mu.Unlock()
		if k == nil || fresh {
			var err error
			if k, err = x.store.keptOf(ctx, x.link, o.TaskUID, step.Writer); err != nil {
				return nil, err
			}
		}
		ops, next, err := x.store.step(k, path, step, o)
		if err != nil {
			return nil, err
		}
		x.mu.Lock()
		delete(x.kept, key) // unknown until the answer
		x.mu.Unlock()
		return &edit{ops: ops, done: func() {
			x.mu.Lock()
			x.kept[key] = next
			x.mu.Unlock()
		}}, nil
	})
}

// Mark implements coordination.Session.
func (x *Session) Mark(ctx context.Context, o coordination.Owner, positions []coordination.Mark) error {
	return x.owned(ctx, "mark progress", o, func(ctx context.Context, h *held, fresh bool) (*edit, error) {
		e := coordination.Entry{
			Kind: coordination.EntryMark, Task: h.status.Task, TaskUID: h.status.TaskUID, ExecutionID: o.ExecutionID, Epoch: o.Epoch,
			At: x.store.now(), Positions: positions,
		}
		path := x.store.journal(o.TaskUID) + "/" + entryName(&e)
		data, err := x.store.fits(path, e)
		if err != nil {
			return nil, err
		}
		if !h.marked || fresh {
			r, err := read(ctx, x.link, path)
			if err != nil {
				return nil, err
			}
			if r == nil {
				return &edit{ops: []any{x.store.createOp(path, data)}, done: func() { x.marked(o) }}, nil
			}
		}
		return &edit{ops: []any{&zk.SetDataRequest{Path: path, Data: data, Version: -1}}, done: func() { x.marked(o) }}, nil
	})
}

func (x *Session) marked(o coordination.Owner) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h := x.held[o.TaskUID]; h != nil && matches(h, o) {
		h.marked = true
	}
}

// Release implements coordination.Session. It goes over the store's connection: a
// session that is lost has nothing left to delete, which is to be found out.
func (x *Session) Release(ctx context.Context, o coordination.Owner) error {
	s := x.store
	err := s.do(ctx, "release the task", func(ctx context.Context, l *link) error {
		for {
			if err := l.sync(ctx); err != nil {
				return err
			}
			f, err := look(ctx, s, l, o.TaskUID)
			if err != nil || f.status == nil {
				return err
			}
			if f.status.ExecutionID != o.ExecutionID {
				return &coordination.FencedError{Op: "release the task", Owner: o, Found: f.status}
			}
			_, failed, err := l.multi(ctx, &zk.CheckVersionRequest{Path: s.epoch(o.TaskUID), Version: f.eStat.Version},
				&zk.DeleteRequest{Path: s.status(o.TaskUID), Version: f.sStat.Version})
			if failed < 0 {
				return err
			}
		}
	})
	if err == nil {
		x.mu.Lock()
		if h := x.held[o.TaskUID]; h != nil && h.status.ExecutionID == o.ExecutionID {
			delete(x.held, o.TaskUID)
		}
		for k := range x.kept {
			if len(k) > len(o.ExecutionID) && k[:len(o.ExecutionID)] == o.ExecutionID {
				delete(x.kept, k)
			}
		}
		x.mu.Unlock()
	}
	return err
}
