package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
)

// Take implements coordination.Session. A take that is given up without an answer
// is settled later: whoever asks again with the executionId gets it, else its node
// is deleted.
func (x *Session) Take(ctx context.Context, t coordination.Take) (out coordination.Status, err error) {
	if _, err := uuid.Parse(t.ExecutionID); err != nil {
		return out, fmt.Errorf("executionId %q: %w UUID", t.ExecutionID, coordination.ErrInvalid)
	}
	err = x.do(ctx, "take task "+t.Task, func(ctx context.Context) error {
		out, err = x.take(ctx, t)
		return err
	})
	if err != nil {
		return coordination.Status{}, err
	}
	return out, nil
}

// found is a task as it was before a take or a conditional write.
type found struct {
	epoch  epochValue
	eStat  *zk.Stat
	status *coordination.Status // nil = no node
	sStat  *zk.Stat
}

// look reads epoch and status of a task, the epoch first: a status node that is
// made later comes with another version of the epoch.
func look(ctx context.Context, s *Store, l *link, taskUID string) (*found, error) {
	var f found
	ok, stat, err := get(ctx, l, s.epoch(taskUID), &f.epoch)
	if err != nil {
		return nil, err
	}
	if ok {
		f.eStat = stat
	}
	var st coordination.Status
	ok, stat, err = get(ctx, l, s.status(taskUID), &st)
	if err != nil {
		return nil, err
	}
	if ok {
		f.status, f.sStat = &st, stat
	}
	return &f, nil
}

func (x *Session) take(ctx context.Context, t coordination.Take) (coordination.Status, error) {
	s, l := x.store, x.link
	var none coordination.Status
	for {
		if err := l.sync(ctx); err != nil {
			return none, err
		}
		r, err := read(ctx, l, s.definition(escaped(t.Task)))
		if err != nil {
			return none, err
		}
		d, err := decoded(t.Task, r)
		if err != nil {
			return none, err
		}
		if t.Version != 0 && t.Version != d.Version {
			return none, &coordination.VersionError{Task: t.Task, Given: t.Version, Have: d.Version}
		}
		f, err := look(ctx, s, l, d.UID)
		if err != nil {
			return none, err
		}
		if f.eStat == nil {
			return none, fmt.Errorf("task %q has no epoch node at %s: the store was damaged by hand; delete and create the task", t.Task, s.epoch(d.UID))
		}
		if old := f.status; old != nil {
			if old.ExecutionID == t.ExecutionID && f.sStat.EphemeralOwner == l.session() {
				x.remember(d.UID, &held{status: *old, version: f.sStat.Version, epoch: f.eStat.Version})
				return *old, nil // the caller, or this loop, asks again after a lost answer
			}
			if old.ExecutionID != t.Replace || !x.worker.Place.Succeeds(old.Place) {
				return none, &coordination.HeldError{Status: *old}
			}
		}
		out := coordination.Status{
			Task: d.Name, TaskUID: d.UID, ExecutionID: t.ExecutionID, Worker: x.worker.ID, PID: x.worker.PID,
			Place: x.worker.Place, StartedAt: s.now(), State: t.State, Session: x.id,
		}
		if out.Epoch, err = above(f.epoch.Epoch, t.Above); err != nil {
			return none, err
		}
		ops, err := x.takeOps(ctx, out, f, r.stat.Version)
		if err != nil {
			return none, err
		}
		_, failed, err := x.takeMulti(ctx, d.UID, t.ExecutionID, ops)
		switch {
		case failed >= 0 && failed == len(ops)-1 && errors.Is(err, zk.ErrNodeExists):
			return none, fmt.Errorf("execution %s: %w already in the journal", t.ExecutionID, coordination.ErrExists)
		case failed >= 0 && (errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists)):
			continue // changed since it was read
		case err != nil:
			return none, named(s.task(d.UID), err)
		}
		x.remember(d.UID, &held{status: out, epoch: f.eStat.Version + 1})
		x.trim(ctx, d.UID)
		return out, nil
	}
}

func above(epoch, least uint64) (uint64, error) {
	e := max(epoch, least) + 1
	if e == 0 || e > 1<<63-1 { // targets keep it in a signed 64-bit column
		return 0, fmt.Errorf("epoch above %d: %w, 2^63-1 is the last", max(epoch, least), coordination.ErrInvalid)
	}
	return e, nil
}

// takeOps are the parts of a take; the journal's is the last.
func (x *Session) takeOps(ctx context.Context, st coordination.Status, f *found, definition int32) ([]any, error) {
	s := x.store
	e := coordination.Entry{
		Kind: coordination.EntryStarted, Task: st.Task, TaskUID: st.TaskUID, ExecutionID: st.ExecutionID, Epoch: st.Epoch,
		At: st.StartedAt, Worker: x.worker.ID, PID: x.worker.PID, Place: x.worker.Place,
	}
	var err error
	if e.Positions, err = s.marks(ctx, x.link, st.TaskUID); err != nil {
		return nil, err
	}
	status, err := s.fits(s.status(st.TaskUID), st)
	if err != nil {
		return nil, err
	}
	epoch, err := encode("epoch", epochValue{st.Epoch})
	if err != nil {
		return nil, err
	}
	entry, err := s.fits(s.journal(st.TaskUID), e)
	if err != nil {
		return nil, err
	}
	node := s.createOp(s.status(st.TaskUID), status)
	node.Flags = zk.FlagEphemeral
	ops := []any{&zk.CheckVersionRequest{Path: s.definition(st.Task), Version: definition}}
	if f.status != nil {
		ops = append(ops, &zk.DeleteRequest{Path: s.status(st.TaskUID), Version: f.sStat.Version})
	}
	return append(ops, node, &zk.SetDataRequest{Path: s.epoch(st.TaskUID), Data: epoch, Version: f.eStat.Version},
		s.createOp(s.journal(st.TaskUID)+"/"+entryName(&e), entry)), nil
}

// takeMulti is multi for a take: one that was abandoned or lost its answer may have
// made a node that nobody knows of.
func (x *Session) takeMulti(ctx context.Context, taskUID, execution string, ops []any) (res []zk.MultiResponse, failed int, err error) {
	sent := x.store.cfg.Clock.Boot()
	type answer struct {
		res []zk.MultiResponse
		err error
	}
	done := make(chan answer, 1)
	go func() {
		res, err := x.link.conn.Multi(ops...)
		done <- answer{res, err}
	}()
	doubt := func() {
		x.mu.Lock()
		x.orphans[taskUID] = orphan{execution, x.store.cfg.Clock.Boot()}
		x.mu.Unlock()
	}
	var a answer
	select {
	case a = <-done:
	case <-x.link.over:
		return nil, -1, errSession
	case <-ctx.Done():
		doubt()
		return nil, -1, ctx.Err()
	}
	if a.err == nil {
		x.link.answered(sent)
		return a.res, -1, nil
	}
	for i := range a.res {
		if a.res[i].Error != nil {
			return a.res, i, a.res[i].Error
		}
	}
	if err = x.link.judge(a.err); errors.Is(err, errLost) {
		doubt()
	}
	return nil, -1, err
}

// reap deletes status nodes of this session whose take nobody came back for.
func (x *Session) reap(ctx context.Context) {
	now := x.store.cfg.Clock.Boot()
	due := map[string]string{}
	x.mu.Lock()
	for uid, o := range x.orphans {
		if now-o.since >= x.store.cfg.OrphanAfter {
			due[uid] = o.execution
		}
	}
	x.mu.Unlock()
	for uid, execution := range due {
		unlock, err := x.lock(ctx, uid)
		if err != nil {
			return
		}
		if err := x.reapOne(ctx, uid, execution); err == nil {
			x.mu.Lock()
			delete(x.orphans, uid)
			x.mu.Unlock()
		}
		unlock()
	}
}

func (x *Session) reapOne(ctx context.Context, taskUID, execution string) error {
	x.mu.Lock()
	o, doubtful := x.orphans[taskUID]
	x.mu.Unlock()
	if !doubtful || o.execution != execution {
		return nil // adopted meanwhile
	}
	f, err := look(ctx, x.store, x.link, taskUID)
	if err != nil || f.status == nil || f.status.ExecutionID != execution || f.sStat.EphemeralOwner != x.link.session() {
		return err
	}
	x.store.cfg.Log.Warn("status node of a take that was given up is deleted", "task", f.status.Task, "execution", execution)
	_, failed, err := x.link.multi(ctx, &zk.DeleteRequest{Path: x.store.status(taskUID), Version: f.sStat.Version})
	if failed >= 0 {
		return nil
	}
	return err
}

// trim removes the oldest executions from a journal so that Keep remain. Those that
// nobody closed stay: a successor has to judge them. It is done when it is worth a
// listing; what goes wrong is made up for at the next take.
func (x *Session) trim(ctx context.Context, taskUID string) {
	s := x.store
	names, err := children(ctx, x.link, s.journal(taskUID))
	if err != nil || len(names) < 3*s.cfg.Keep {
		return
	}
	closed := map[string]bool{}
	var order []string // executionIds are UUIDv7: their order is that of time
	for _, n := range names {
		id, kind := split(n)
		switch coordination.EntryKind(kind) {
		case coordination.EntryStarted:
			order = append(order, id)
		case coordination.EntryEnded, coordination.EntryDead:
			closed[id] = true
		}
	}
	slices.Sort(order)
	drop := map[string]bool{}
	for _, id := range order[:max(0, len(order)-s.cfg.Keep)] {
		drop[id] = closed[id]
	}
	var ops []any
	for _, n := range names {
		if id, _ := split(n); drop[id] {
			ops = append(ops, &zk.DeleteRequest{Path: s.journal(taskUID) + "/" + n, Version: -1})
		}
	}
	for part := range slices.Chunk(ops, 256) {
		if _, _, err := x.link.multi(ctx, part...); err != nil {
			return
		}
	}
}

// split parts a node name of a journal into executionId and kind.
func split(name string) (id, kind string) {
	for _, k := range []coordination.EntryKind{
		coordination.EntryStarted, coordination.EntryMark, coordination.EntryEnded, coordination.EntryLost, coordination.EntryDead,
	} {
		if id, ok := strings.CutSuffix(name, "-"+string(k)); ok {
			return id, string(k)
		}
	}
	if at := strings.LastIndex(name, "-"+string(coordination.EntryRaised)+"-"); at >= 0 {
		return name[:at], string(coordination.EntryRaised)
	}
	return name, ""
}
