package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// tx is one transaction. It has the writer's turn from Begin to its end.
type tx struct {
	w       *Writer
	c       *conn
	lanes   []int32
	fenced  bool
	altered bool
	done    bool
	a       *applier
}

// Begin opens a transaction. It waits until that of another lane has ended.
func (w *Writer) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	if w.session == nil {
		w.give()
		return nil, sdk.Faultf(sdk.CodeInternal, "transaction in %s before a claim", w.cfg.Path)
	}
	c, err := w.begin(ctx, readWrite, "transaction")
	if err != nil {
		w.give()
		return nil, err
	}
	failpoint.Hit("rdbms.begun")
	return &tx{w: w, c: c, lanes: slices.Clone(lanes)}, nil
}

// Fence writes the progress of the lanes and then what is stored with it.
func (t *tx) Fence(_ context.Context, next []sdk.Next) error {
	w := t.w
	if t.done || t.fenced {
		return sdk.Faultf(sdk.CodeInternal, "fence of a transaction that has ended or was fenced already")
	}
	for i := range next {
		n := &next[i]
		if i >= len(t.lanes) || n.Lane != t.lanes[i] || len(next) != len(t.lanes) {
			return sdk.Faultf(sdk.CodeInternal, "fence of lane %d in a transaction of lanes %v", n.Lane, t.lanes)
		}
		matched, err := w.fence(t.c, n)
		if err != nil {
			return w.fault("fence", err)
		}
		if matched == 1 {
			continue
		}
		row, err := readRow(t.c, w.session.Task, w.session.Writer, n.Lane)
		if err != nil {
			return w.fault("fence", err)
		}
		return w.session.Refusal(n.Lane, n.BatchNo, row)
	}
	failpoint.Hit("rdbms.fenced")
	for i := range next {
		if err := w.putState(t.c, next[i].State); err != nil {
			return w.fault("reader state", err)
		}
		if err := w.putDeadLetters(t.c, &next[i]); err != nil {
			return w.fault("dead letters", err)
		}
	}
	t.fenced = true
	failpoint.Hit("rdbms.stored")
	return nil
}

// Commit makes the transaction durable: the log is synced before COMMIT returns.
func (t *tx) Commit(ctx context.Context) error {
	if t.done || !t.fenced {
		return sdk.Faultf(sdk.CodeInternal, "commit of a transaction that was not fenced or has ended")
	}
	failpoint.Hit("rdbms.applied")
	w := t.w
	defer t.end()
	if w.atCommit != nil {
		if err := w.atCommit(false); err != nil {
			w.disconnect()
			return lostCommit(err)
		}
	}
	if t.c.place() != samePlace {
		// What is committed to a file that has no name any more is lost.
		w.rollback(t.c)
		return sdk.Faultf(sdk.CodeTargetWentBack, "commit in %s: the file at the path was replaced or overwritten", w.cfg.Path).Suggest("restart the task, it continues from what the target holds now")
	}
	if err := t.c.exec(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		if busy(err) {
			w.rollback(t.c)
			return w.fault("commit", err)
		}
		w.disconnect()
		return lostCommit(err)
	}
	failpoint.Hit("rdbms.committed")
	if w.atCommit != nil {
		if err := w.atCommit(true); err != nil {
			w.disconnect()
			return lostCommit(err)
		}
	}
	return nil
}

func lostCommit(err error) error {
	return fmt.Errorf("%w: %w", sdk.ErrCommitUnknown, err)
}

// Rollback ends the transaction without effect.
func (t *tx) Rollback(context.Context) error {
	if t.done {
		return nil
	}
	t.w.rollback(t.c)
	if t.altered {
		t.w.forget()
	}
	t.end()
	return nil
}

func (t *tx) end() {
	if !t.done {
		t.done = true
		t.w.give()
	}
}

// Settle reads a lane's progress with the file locked, on a new connection: the
// one whose answer was lost may still be at work.
func (w *Writer) Settle(ctx context.Context, lane int32) (sdk.Point, error) {
	if err := w.take(ctx); err != nil {
		return sdk.Point{}, err
	}
	defer w.give()
	if w.session == nil {
		return sdk.Point{}, sdk.Faultf(sdk.CodeInternal, "settle in %s before a claim", w.cfg.Path)
	}
	w.disconnect()
	c, err := w.begin(ctx, readWrite, "settle")
	if err != nil {
		return sdk.Point{}, err
	}
	defer w.rollback(c)
	row, err := readRow(c, w.session.Task, w.session.Writer, lane)
	if err != nil {
		return sdk.Point{}, w.fault("settle", err)
	}
	if !w.session.Holds(row) {
		return sdk.Point{}, w.session.Refusal(lane, 0, row)
	}
	return row.Point()
}
