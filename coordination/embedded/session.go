package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"
	bolt "go.etcd.io/bbolt"

	"github.com/datalink-go/datalink/coordination"
)

// Session is a worker's membership in a Store.
type Session struct {
	store  *Store
	id     string
	worker coordination.Worker
	lost   chan struct{}
	once   sync.Once
}

var _ coordination.Session = (*Session)(nil)

// Join implements coordination.Store. The worker's place and pid are this
// process's where they are empty.
func (s *Store) Join(ctx context.Context, w coordination.Worker) (coordination.Session, error) {
	if w.ID == "" {
		return nil, fmt.Errorf("worker without an id: %w", coordination.ErrInvalid)
	}
	if w.Place == (coordination.Place{}) {
		w.Place = s.place
	}
	x := &Session{store: s, id: uuid.NewString(), lost: make(chan struct{})}
	w.Session, w.JoinedAt = x.id, s.now()
	x.worker = w
	err := s.update(ctx, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("workers"))
		if b.Get([]byte(w.ID)) != nil {
			return fmt.Errorf("worker %q: %w", w.ID, coordination.ErrExists)
		}
		if err := put(b, w.ID, w); err != nil {
			return err
		}
		s.mu.Lock()
		s.sessions[x.id] = x
		s.mu.Unlock()
		return nil
	})
	if err != nil {
		s.forget(x.id)
		return nil, err
	}
	return x, nil
}

func (s *Store) forget(session string) {
	s.mu.Lock()
	delete(s.sessions, session)
	s.mu.Unlock()
}

// ID implements coordination.Session.
func (x *Session) ID() string { return x.id }

// Worker implements coordination.Session.
func (x *Session) Worker() coordination.Worker { return x.worker }

// Lease implements coordination.Session.
func (x *Session) Lease() coordination.Lease {
	return coordination.Lease{Sent: x.store.clock.Boot()}
}

// Lost implements coordination.Session.
func (x *Session) Lost() <-chan struct{} { return x.lost }

// Close implements coordination.Session.
func (x *Session) Close(ctx context.Context) error {
	err := x.store.Expire(ctx, x.id)
	if errors.Is(err, coordination.ErrNotFound) || errors.Is(err, coordination.ErrClosed) {
		return nil
	}
	return err
}

// Expire ends a session from outside: its nodes are deleted and it learns of it.
func (s *Store) Expire(ctx context.Context, session string) error {
	s.mu.Lock()
	x := s.sessions[session]
	s.mu.Unlock()
	if x == nil {
		return fmt.Errorf("session %s: %w", session, coordination.ErrNotFound)
	}
	var names []string
	err := s.update(ctx, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("status"))
		all, err := list[coordination.Status](b, "")
		if err != nil {
			return err
		}
		for _, st := range all {
			if st.Session == session {
				names = append(names, st.Task)
				if err := b.Delete([]byte(st.TaskUID)); err != nil {
					return err
				}
			}
		}
		s.forget(session)
		return tx.Bucket([]byte("workers")).Delete([]byte(x.worker.ID))
	})
	if err != nil {
		return err
	}
	x.once.Do(func() { close(x.lost) })
	for _, n := range names {
		s.watch.changed(n)
	}
	return nil
}

// alive is called inside an update, where sessions end too.
func (x *Session) alive() error {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	if x.store.sessions[x.id] != x {
		return fmt.Errorf("session %s of worker %q: %w", x.id, x.worker.ID, coordination.ErrSessionLost)
	}
	return nil
}

// Take implements coordination.Session.
func (x *Session) Take(ctx context.Context, t coordination.Take) (out coordination.Status, err error) {
	if _, err := uuid.Parse(t.ExecutionID); err != nil {
		return out, fmt.Errorf("executionId %q: %w UUID", t.ExecutionID, coordination.ErrInvalid)
	}
	s := x.store
	err = s.update(ctx, func(tx *bolt.Tx) error {
		if err := x.alive(); err != nil {
			return err
		}
		d, err := task(tx, t.Task)
		if err != nil {
			return err
		}
		if t.Version != 0 && t.Version != d.Version {
			return &coordination.VersionError{Task: t.Task, Given: t.Version, Have: d.Version}
		}
		old, err := status(tx, d.UID)
		if err != nil {
			return err
		}
		if old != nil && old.ExecutionID == t.ExecutionID && old.Session == x.id {
			out = *old // the caller asks again after a lost answer
			return nil
		}
		if old != nil && (old.ExecutionID != t.Replace || !x.worker.Place.Succeeds(old.Place)) {
			return &coordination.HeldError{Status: *old}
		}
		out = coordination.Status{
			Task: d.Name, TaskUID: d.UID, ExecutionID: t.ExecutionID, Worker: x.worker.ID, PID: x.worker.PID,
			Place: x.worker.Place, StartedAt: s.now(), State: t.State, Session: x.id,
		}
		if out.Epoch, err = raise(tx, d.UID, t.Above); err != nil {
			return err
		}
		e := coordination.Entry{
			Kind: coordination.EntryStarted, Task: d.Name, TaskUID: d.UID, ExecutionID: t.ExecutionID, Epoch: out.Epoch,
			At: out.StartedAt, Worker: x.worker.ID, PID: x.worker.PID, Place: x.worker.Place,
		}
		if e.Positions, err = marks(tx, d.UID); err != nil {
			return err
		}
		fresh, err := appendEntry(tx, &e)
		if err != nil {
			return err
		}
		if !fresh {
			return fmt.Errorf("execution %s: %w already in the journal", t.ExecutionID, coordination.ErrExists)
		}
		if err := trim(tx, d.UID, s.keep); err != nil {
			return err
		}
		return put(tx.Bucket([]byte("status")), d.UID, out)
	})
	if err != nil {
		return coordination.Status{}, err
	}
	s.watch.changed(t.Task)
	return out, nil
}

type epochValue struct {
	Epoch uint64 `json:"epoch"`
}

func raise(tx *bolt.Tx, taskUID string, above uint64) (uint64, error) {
	b := tx.Bucket([]byte("epochs"))
	var v epochValue
	if _, err := get(b, taskUID, &v); err != nil {
		return 0, err
	}
	v.Epoch = max(v.Epoch, above) + 1
	if v.Epoch == 0 || v.Epoch > 1<<63-1 { // targets keep it in a signed 64-bit column
		return 0, fmt.Errorf("epoch above %d: %w, 2^63-1 is the last", above, coordination.ErrInvalid)
	}
	return v.Epoch, put(b, taskUID, v)
}

// marks are the positions that the store knows of.
func marks(tx *bolt.Tx, taskUID string) ([]coordination.Mark, error) {
	b := bucket(tx, "progress", taskUID)
	if b == nil {
		return nil, nil
	}
	var out []coordination.Mark
	err := b.ForEachBucket(func(k []byte) error {
		points, err := list[coordination.Point](b.Bucket(k), "point/")
		for _, p := range points {
			out = append(out, coordination.Mark{Writer: string(k), Lane: p.Lane, Position: p.Position})
		}
		return err
	})
	return out, err
}

// owned runs f in a transaction in which the execution owns its task; what f makes
// of the status node is stored.
func (x *Session) owned(ctx context.Context, op string, o coordination.Owner, f func(*bolt.Tx, *coordination.Status) error) (coordination.Status, error) {
	var st *coordination.Status
	err := x.store.update(ctx, func(tx *bolt.Tx) (err error) {
		if err := x.alive(); err != nil {
			return fmt.Errorf("%s for execution %s: %w", op, o.ExecutionID, err)
		}
		if st, err = status(tx, o.TaskUID); err != nil {
			return err
		}
		if st == nil || st.ExecutionID != o.ExecutionID || st.Epoch != o.Epoch {
			return &coordination.FencedError{Op: op, Owner: o, Found: st}
		}
		before := *st
		if err := f(tx, st); err != nil {
			return err
		}
		if *st == before {
			return nil
		}
		return put(tx.Bucket([]byte("status")), o.TaskUID, st)
	})
	if err != nil {
		return coordination.Status{}, err
	}
	return *st, nil
}

// Raise implements coordination.Session.
func (x *Session) Raise(ctx context.Context, o coordination.Owner, above uint64) (coordination.Status, error) {
	st, err := x.owned(ctx, "raise the epoch", o, func(tx *bolt.Tx, st *coordination.Status) (err error) {
		if st.Epoch, err = raise(tx, o.TaskUID, above); err != nil {
			return err
		}
		_, err = appendEntry(tx, &coordination.Entry{
			Kind: coordination.EntryRaised, Task: st.Task, TaskUID: st.TaskUID, ExecutionID: st.ExecutionID, Epoch: st.Epoch, At: x.store.now(),
		})
		return err
	})
	if err == nil {
		x.store.watch.changed(st.Task)
	}
	return st, err
}

// SetState implements coordination.Session.
func (x *Session) SetState(ctx context.Context, o coordination.Owner, state, reason string) error {
	st, err := x.owned(ctx, "set the state", o, func(_ *bolt.Tx, st *coordination.Status) error {
		st.State, st.Reason = state, reason
		return nil
	})
	if err == nil {
		x.store.watch.changed(st.Task)
	}
	return err
}

// Save implements coordination.Session.
func (x *Session) Save(ctx context.Context, o coordination.Owner, step coordination.Step) error {
	_, err := x.owned(ctx, "save progress", o, func(tx *bolt.Tx, st *coordination.Status) error {
		return save(tx, st, step, coordination.Progress{Writer: step.Writer, Execution: o.ExecutionID, Epoch: o.Epoch, UpdatedAt: x.store.now()})
	})
	return err
}

// Mark implements coordination.Session.
func (x *Session) Mark(ctx context.Context, o coordination.Owner, positions []coordination.Mark) error {
	_, err := x.owned(ctx, "mark progress", o, func(tx *bolt.Tx, st *coordination.Status) error {
		_, err := appendEntry(tx, &coordination.Entry{
			Kind: coordination.EntryMark, Task: st.Task, TaskUID: st.TaskUID, ExecutionID: o.ExecutionID, Epoch: o.Epoch,
			At: x.store.now(), Positions: positions,
		})
		return err
	})
	return err
}

// Release implements coordination.Session.
func (x *Session) Release(ctx context.Context, o coordination.Owner) error {
	var st *coordination.Status
	err := x.store.update(ctx, func(tx *bolt.Tx) (err error) {
		if st, err = status(tx, o.TaskUID); err != nil || st == nil {
			return err
		}
		if st.ExecutionID != o.ExecutionID {
			return &coordination.FencedError{Op: "release the task", Owner: o, Found: st}
		}
		return tx.Bucket([]byte("status")).Delete([]byte(o.TaskUID))
	})
	if err == nil && st != nil {
		x.store.watch.changed(st.Task)
	}
	return err
}
