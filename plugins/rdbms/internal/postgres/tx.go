package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// tx is one transaction. It has the turn of its first lane from Begin to its end.
type tx struct {
	w       *Writer
	l       *lane
	s       *session
	claim   *ledger.Session
	lanes   []int32
	next    []sdk.Next // what the fence wrote
	open    bool       // the server has a transaction
	fenced  bool
	altered bool // plans made inside of it hold only if it commits
	done    bool

	pipe   *pipe // of the session
	single bool  // one change a statement, each behind a savepoint
	copied bool  // the session got a temporary table inside of it
	parked bool  // unique values were given up before the changes were written
}

// Begin takes the first lane's session. The others of a transaction that spans
// lanes have nothing in flight; a claim ends the session all the same, since it
// takes every lane's lock.
func (w *Writer) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	if len(lanes) == 0 {
		return nil, sdk.Faultf(sdk.CodeInternal, "transaction without a lane")
	}
	l, err := w.take(ctx, lanes[0])
	if err != nil {
		return nil, err
	}
	s, err := w.connected(ctx, l)
	if err != nil {
		l.give()
		return nil, err
	}
	claim := w.session()
	if claim == nil {
		l.give()
		return nil, sdk.Faultf(sdk.CodeInternal, "transaction in %s before a claim", w.place())
	}
	failpoint.Hit("rdbms.begun")
	return &tx{w: w, l: l, s: s, claim: claim, lanes: slices.Clone(lanes), pipe: &s.pipe}, nil
}

const begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

// Fence begins the transaction and writes the progress of the lanes in one round
// trip, then what is stored with it.
func (t *tx) Fence(ctx context.Context, next []sdk.Next) error {
	if t.done || t.fenced || t.open {
		return sdk.Faultf(sdk.CodeInternal, "fence of a transaction that has ended or was fenced already")
	}
	for i := range next {
		if i >= len(t.lanes) || next[i].Lane != t.lanes[i] || len(next) != len(t.lanes) {
			return sdk.Faultf(sdk.CodeInternal, "fence of lane %d in a transaction of lanes %v", next[i].Lane, t.lanes)
		}
	}
	t.next = slices.Clone(next)
	if err := t.fence(ctx); err != nil {
		return t.failed("fence", err)
	}
	failpoint.Hit("rdbms.fenced")
	for i := range next {
		if err := t.w.putState(ctx, t.s, t.claim, next[i].State); err != nil {
			return t.failed("reader state", err)
		}
		if err := t.w.putDeadLetters(ctx, t.s, t.claim, &next[i]); err != nil {
			return t.failed("dead letters", err)
		}
	}
	t.fenced = true
	failpoint.Hit("rdbms.stored")
	return nil
}

// fence sends BEGIN and the conditional writes, and reads the counts.
func (t *tx) fence(ctx context.Context) error {
	name, err := t.s.prepared(ctx, t.w.fenceText(), nil)
	if err != nil {
		return err
	}
	var b pgconn.Batch
	b.ExecParams(begin, nil, nil, nil, nil)
	for i := range t.next {
		values, formats := params(t.w.fenceArgs(t.claim, &t.next[i], t.s.pid))
		b.ExecPrepared(name, values, formats, nil)
	}
	t.open = true
	results, err := t.s.pc.ExecBatch(ctx, &b).ReadAll()
	if err != nil {
		return err
	}
	for i := range t.next {
		if results[i+1].CommandTag.RowsAffected() == 1 || t.w.cfg.Switches.CountOff {
			continue
		}
		return t.refusal(ctx, &t.next[i])
	}
	return nil
}

// refusal says why the fence of a lane matched no row.
func (t *tx) refusal(ctx context.Context, n *sdk.Next) error {
	r, err := t.s.query(ctx, "SELECT pg_backend_pid()")
	if err != nil {
		return err
	}
	if r[0].int(0) != int64(t.s.pid) {
		return pooled(t.w.place())
	}
	have, err := t.w.readRow(ctx, t.s, t.claim.Task, t.claim.Writer, n.Lane, "")
	if err != nil {
		return err
	}
	return t.claim.Refusal(n.Lane, n.BatchNo, have)
}

// failed classifies an error inside the transaction. A session that was lost has
// nothing left to roll back.
func (t *tx) failed(doing string, err error) error {
	if t.s.closed() {
		t.open = false
	}
	return t.w.fault(doing, err)
}

// Commit makes the transaction durable. An error in which the server names a fault
// of the transaction says that it has ended without effect; a session that was
// ended or cut off says nothing.
func (t *tx) Commit(ctx context.Context) error {
	if t.done || !t.fenced {
		return sdk.Faultf(sdk.CodeInternal, "commit of a transaction that was not fenced or has ended")
	}
	failpoint.Hit("rdbms.applied")
	err := commit(ctx, t.s)
	if err == nil {
		t.open = false
		t.end()
		failpoint.Hit("rdbms.committed")
		return nil
	}
	if t.altered {
		t.w.plans.forget()
	}
	if e := pgError(err); e != nil && e.Severity == "ERROR" && !t.s.closed() {
		t.open = false
		t.end()
		return t.w.fault("commit", err)
	}
	if sdk.AsFault(err).Code == sdk.CodeUnavailable { // answered ROLLBACK
		t.open = false
		t.end()
		return err
	}
	t.l.drop()
	t.end()
	return lostCommit(err)
}

// rollbackTimeout bounds the wait for a ROLLBACK: a session that does not take it
// is closed, which rolls back too.
const rollbackTimeout = 5 * time.Second

// Rollback ends the transaction without effect.
func (t *tx) Rollback(context.Context) error {
	if t.done {
		return nil
	}
	if t.altered {
		t.w.plans.forget()
	}
	if t.open {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
		defer cancel()
		if err := t.s.run(ctx, "ROLLBACK"); err != nil {
			t.l.drop()
		}
	}
	if t.copied {
		clear(t.s.copies)
	}
	t.end()
	return nil
}

func (t *tx) end() {
	if t.done {
		return
	}
	t.done = true
	if t.s.closed() {
		t.l.drop()
	}
	t.l.give()
}

// Settle reads a lane's progress under a row lock, in a new session: to get the
// lane's lock it ends the one whose answer was lost, which may still be at work.
func (w *Writer) Settle(ctx context.Context, no int32) (sdk.Point, error) {
	var none sdk.Point
	l, err := w.take(ctx, no)
	if err != nil {
		return none, err
	}
	defer l.give()
	l.drop()
	s, err := w.connected(ctx, l)
	if err != nil {
		return none, err
	}
	claim := w.session()
	if claim == nil {
		return none, sdk.Faultf(sdk.CodeInternal, "settle in %s before a claim", w.place())
	}
	if err := s.run(ctx, begin); err != nil {
		return none, w.fault("settle", err)
	}
	r, err := w.readRow(ctx, s, claim.Task, claim.Writer, no, "FOR UPDATE")
	if err == nil {
		err = s.run(ctx, "ROLLBACK")
	}
	if err != nil {
		l.drop()
		return none, w.fault("settle", err)
	}
	if !claim.Holds(r) {
		return none, claim.Refusal(no, 0, r)
	}
	return r.Point()
}
