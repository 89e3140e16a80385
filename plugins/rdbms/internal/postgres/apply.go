package postgres

import (
	"context"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// Apply writes the changes in their order. The statements of a group say of an
// error only that one of its rows is at fault. Then all of it is done again: with
// unique values given up first, where two rows exchange one; then change by change
// to name those that cannot be written.
func (t *tx) Apply(ctx context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	if t.done || !t.fenced {
		return nil, sdk.Faultf(sdk.CodeInternal, "changes for a transaction that was not fenced or has ended")
	}
	bad, err := t.writeAll(ctx, ch)
	if pgCode(err) == pgUnique && !t.parked && t.exchanges(ch) {
		if err := t.again(ctx); err != nil {
			return nil, t.failed("changes", err)
		}
		t.parked = true
		bad, err = t.writeAll(ctx, ch)
	}
	if (ofRow(err) || err == nil && len(bad) > 0) && !t.single {
		if err := t.again(ctx); err != nil {
			return nil, t.failed("changes", err)
		}
		t.single = true
		bad, err = t.writeAll(ctx, ch)
	}
	if err != nil {
		return nil, t.failed("changes", err)
	}
	return bad, nil
}

// again begins the transaction anew, up to what the fence stored.
func (t *tx) again(ctx context.Context) error {
	if t.altered {
		t.w.plans.forget()
	}
	t.pipe.drop()
	clear(t.s.copies)
	if err := t.s.run(ctx, "ROLLBACK"); err != nil {
		return err
	}
	t.open, t.fenced = false, false
	next := t.next
	return t.Fence(ctx, next)
}

func (t *tx) writeAll(ctx context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	t.pipe.reset(t)
	base := 0
	for n, seg := range ch.Segments {
		if t.parked {
			if err := t.park(ctx, ch.Segments[n:]); err != nil {
				return nil, err
			}
		}
		t.pipe.base = base
		for _, g := range t.pipe.groups.Of(seg) {
			if err := t.group(ctx, seg, g); err != nil {
				return nil, err
			}
		}
		if len(t.pipe.bad) > 0 {
			return t.pipe.errors(), nil
		}
		base += len(seg)
	}
	if err := t.pipe.flush(ctx); err != nil {
		return nil, err
	}
	if len(t.pipe.bad) > 0 {
		return t.pipe.errors(), nil
	}
	if t.pipe.replaced > 0 {
		t.w.cfg.Stats.Replaced.Add(uint64(t.pipe.replaced))
		t.w.cfg.Log.Warn("values that the target cannot hold were replaced", "policy", t.w.cfg.OnUnfit, "values", t.pipe.replaced)
	}
	failpoint.Hit("rdbms.row")
	return nil, nil
}

// group writes changes of one table and operation.
func (t *tx) group(ctx context.Context, seg []sdk.Change, g target.Group) error {
	if g.Op == sdk.Alter {
		for _, k := range g.At {
			if err := t.pipe.flush(ctx); err != nil {
				return err
			}
			if err := t.alter(ctx, seg[k].DDL); err != nil {
				return err
			}
		}
		return nil
	}
	if g.Schema == nil {
		return sdk.Faultf(sdk.CodeInternal, "%s without a schema", g.Op)
	}
	p, err := t.planOf(ctx, g.Schema)
	if err != nil {
		return err
	}
	switch g.Op {
	case sdk.Upsert:
		return t.grouped(ctx, p, seg, g, upsertText)
	case sdk.Append:
		if len(p.key) > 0 {
			return sdk.Faultf(sdk.CodeInternal, "append to table %s, which has a key", p.table)
		}
		return t.grouped(ctx, p, seg, g, insertText)
	case sdk.Patch, sdk.Rekey:
		return t.grouped(ctx, p, seg, g, updateText)
	case sdk.Remove:
		return t.grouped(ctx, p, seg, g, deleteText)
	case sdk.Truncate:
		if err := t.pipe.flush(ctx); err != nil {
			return err
		}
		return t.s.run(ctx, p.truncateText())
	case sdk.Reconcile:
		for _, k := range g.At {
			if err := t.reconcile(ctx, p, &seg[k]); err != nil {
				return err
			}
		}
		return nil
	case sdk.MatchPatch, sdk.MatchRemove:
		for _, k := range g.At {
			if err := t.match(ctx, p, seg, k); err != nil {
				return err
			}
		}
		return nil
	}
	return sdk.Faultf(sdk.CodeInternal, "%s of a row of %s: no such operation here", g.Op, g.Schema.Name())
}

func (p *plan) truncateText() string {
	if p.t.truncate && !p.t.Referenced {
		return "TRUNCATE " + p.table
	}
	return "DELETE FROM " + p.table
}

// grouped puts the changes into sets of rows with the same columns, and these into
// the pipe.
func (t *tx) grouped(ctx context.Context, p *plan, seg []sdk.Change, g target.Group, op opText) error {
	if len(p.key) == 0 && op != insertText {
		return sdk.Faultf(sdk.CodeInternal, "%s of a row of table %s by key, and it has none", g.Op, p.table)
	}
	if op == upsertText && p.apart {
		// Rows that are there, then those that are not.
		op = updateText
	}
	x := t.pipe
	x.sets = x.sets[:0]
	for _, k := range g.At {
		if t.single {
			if err := t.alone(ctx, p, seg, k, op); err != nil {
				return err
			}
			continue
		}
		if err := x.add(p, &seg[k], k, op); err != nil {
			return err
		}
	}
	for n := range x.sets {
		if err := x.send(ctx, x.sets[n], seg, g.Read); err != nil {
			return err
		}
	}
	return nil
}

// alone writes one change behind a savepoint.
func (t *tx) alone(ctx context.Context, p *plan, seg []sdk.Change, k int32, op opText) error {
	x := t.pipe
	if err := t.s.run(ctx, "SAVEPOINT change"); err != nil {
		return err
	}
	x.sets = x.sets[:0]
	err := x.add(p, &seg[k], k, op)
	if err == nil && len(x.sets) > 0 {
		err = x.send(ctx, x.sets[0], seg, false)
	}
	if err == nil {
		err = x.flush(ctx)
	}
	if err == nil && p.deferrable {
		err = t.s.run(ctx, "SET CONSTRAINTS ALL IMMEDIATE")
		if err == nil {
			err = t.s.run(ctx, "SET CONSTRAINTS ALL DEFERRED")
		}
	}
	if err == nil {
		return t.s.run(ctx, "RELEASE SAVEPOINT change")
	}
	if !ofRow(err) {
		return err
	}
	if seg[k].Op == sdk.Rekey && pgCode(err) == pgUnique && !p.t.Referenced {
		return t.replace(ctx, p, seg, k)
	}
	x.refuse(k, t.w.rowFault(target.Row(&seg[k]), err))
	x.drop()
	return t.s.run(ctx, "ROLLBACK TO SAVEPOINT change; RELEASE SAVEPOINT change")
}

// replace moves a row to a key where another one stands: as an upsert does, it
// takes that one's place.
func (t *tx) replace(ctx context.Context, p *plan, seg []sdk.Change, k int32) error {
	x := t.pipe
	x.drop()
	if err := t.s.run(ctx, "ROLLBACK TO SAVEPOINT change"); err != nil {
		return err
	}
	there := sdk.Change{Op: sdk.Remove, Schema: seg[k].Schema, Key: seg[k].Key}
	r, ok, err := x.one(p, &there, k, deleteText)
	if err == nil && ok {
		_, err = x.now(ctx, r)
	}
	x.sets = x.sets[:0]
	if err == nil {
		err = x.add(p, &seg[k], k, updateText)
	}
	if err == nil && len(x.sets) > 0 {
		err = x.send(ctx, x.sets[0], seg, false)
	}
	if err == nil {
		return t.s.run(ctx, "RELEASE SAVEPOINT change")
	}
	if !ofRow(err) {
		return err
	}
	x.refuse(k, t.w.rowFault(target.Row(&seg[k]), err))
	return t.s.run(ctx, "ROLLBACK TO SAVEPOINT change; RELEASE SAVEPOINT change")
}

// missing is what becomes of a change whose row is not there: it is written where
// the change has all of it; a row whose key was changed before stands under the
// new one.
func (t *tx) missing(ctx context.Context, p *plan, seg []sdk.Change, k int32) error {
	c := &seg[k]
	x := t.pipe
	one := func(c *sdk.Change, op opText) (int64, error) {
		r, ok, err := x.one(p, c, k, op)
		if err != nil || !ok {
			return 1, err // refused, and noted
		}
		return x.now(ctx, r)
	}
	if c.Op == sdk.Rekey {
		moved := *c
		moved.Op, moved.OldKey, moved.Before = sdk.Patch, nil, batch.Image{}
		if n, err := one(&moved, updateText); err != nil || n > 0 {
			return err
		}
	}
	if c.After.Complete() || c.Op == sdk.Upsert {
		full := *c
		full.Op, full.OldKey = sdk.Upsert, nil
		_, err := one(&full, insertText)
		return err
	}
	x.refuse(k, target.MissingRow(c))
	return nil
}

func (t *tx) unfit(p *plan, i int, bad *misfit) *sdk.Fault {
	return target.Unfit(p.schema, i, "%s", bad.why)
}
