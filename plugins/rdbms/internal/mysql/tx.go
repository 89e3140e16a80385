package mysql

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// tx is one transaction, on the session of its first lane: a claim takes the locks
// of all lanes, so any of them stands for all.
type tx struct {
	w      *Writer
	l      *lane
	x      *ledger.Session
	lanes  []int32
	next   []sdk.Next
	fenced bool
	done   bool
}

// Begin finds the session of the lane. The transaction begins with the first
// statement: the session commits nothing by itself.
func (w *Writer) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	if err := w.open(); err != nil {
		return nil, err
	}
	x := w.claimed()
	if x == nil || len(lanes) == 0 {
		return nil, sdk.Faultf(sdk.CodeInternal, "transaction of lanes %v at %s before a claim", lanes, w.addr.where())
	}
	l, err := w.lane(ctx, lanes[0])
	if err != nil {
		return nil, err
	}
	failpoint.Hit("rdbms.begun")
	return &tx{w: w, l: l, x: x, lanes: slices.Clone(lanes)}, nil
}

// Fence writes the progress of the lanes, each answer read before the next is
// sent, and then what is stored with it.
func (t *tx) Fence(ctx context.Context, next []sdk.Next) error {
	w, s := t.w, t.l.s
	if t.done || t.fenced {
		return sdk.Faultf(sdk.CodeInternal, "fence of a transaction that has ended or was fenced already")
	}
	for i := range next {
		n := &next[i]
		if i >= len(t.lanes) || n.Lane != t.lanes[i] || len(next) != len(t.lanes) {
			return sdk.Faultf(sdk.CodeInternal, "fence of lane %d in a transaction of lanes %v", n.Lane, t.lanes)
		}
		t.l.a.text = w.appendFence(t.l.a.text[:0], t.x, n)
		matched, err := s.matched(ctx, view(t.l.a.text))
		if err != nil {
			return w.fault("fence", err)
		}
		if matched == 1 || w.cfg.Switches.CountOff {
			continue
		}
		row, err := w.readRow(ctx, s, n.Lane, false)
		if err != nil {
			return w.fault("fence", err)
		}
		return t.x.Refusal(n.Lane, n.BatchNo, row)
	}
	failpoint.Hit("rdbms.fenced")
	for i := range next {
		if err := w.store(ctx, s, t.x, &next[i]); err != nil {
			return w.fault("reader state and dead letters", err)
		}
	}
	t.fenced, t.next = true, next
	failpoint.Hit("rdbms.stored")
	return nil
}

// Commit makes the transaction durable. Whatever the server answers but success,
// the outcome is asked for: a session that was ended while it committed may have
// committed.
func (t *tx) Commit(ctx context.Context) error {
	if t.done || !t.fenced {
		return sdk.Faultf(sdk.CodeInternal, "commit of a transaction that was not fenced or has ended")
	}
	failpoint.Hit("rdbms.applied")
	if t.w.atCommit != nil {
		t.w.atCommit()
	}
	t.done = true
	if err := t.l.s.exec(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		t.l.s.close()
		return fmt.Errorf("%w: %w", sdk.ErrCommitUnknown, err)
	}
	failpoint.Hit("rdbms.committed")
	return nil
}

// Rollback ends the transaction without effect. A session that cannot even do
// that is given up: its successor ends it before it takes the lock.
func (t *tx) Rollback(ctx context.Context) error {
	if t.done {
		return nil
	}
	t.done = true
	s := t.l.s
	if s.dead {
		s.close()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := s.exec(ctx, "ROLLBACK"); err != nil {
		s.close()
	}
	return nil
}

// Settle reads a lane's progress under a row lock, on a new session. That takes
// the lane's lock, so the session whose answer was lost has ended by then, and
// the row lock waits for what it may still be committing.
func (w *Writer) Settle(ctx context.Context, no int32) (sdk.Point, error) {
	x := w.claimed()
	if x == nil {
		return sdk.Point{}, sdk.Faultf(sdk.CodeInternal, "settle at %s before a claim", w.addr.where())
	}
	w.mu.Lock()
	if l := w.lanes[no]; l != nil && l.s != nil {
		l.s.close()
	}
	w.mu.Unlock()
	l, err := w.lane(ctx, no)
	if err != nil {
		return sdk.Point{}, err
	}
	row, err := w.readRow(ctx, l.s, no, true)
	if err == nil {
		err = l.s.exec(ctx, "ROLLBACK")
	}
	if err != nil {
		return sdk.Point{}, w.fault("settle", err)
	}
	if !x.Holds(row) {
		return sdk.Point{}, x.Refusal(no, 0, row)
	}
	return row.Point()
}
