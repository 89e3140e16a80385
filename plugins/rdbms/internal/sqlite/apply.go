package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// Rows between two looks at the context: statements inside a transaction wait
// for nothing, so only their number takes time.
const rowsPerLook = 256

// applier writes the changes of one Apply. Its buffers serve all rows.
type applier struct {
	t             *tx
	enc           encoder
	args          []driver.NamedValue
	before, after []batch.Value
	maskA, maskB  []byte
	nulled        int // values set to NULL or cut by policy
}

// Apply writes the changes in their order. It goes on to the end of a segment
// after a change that cannot be written, to name as many as there are.
func (t *tx) Apply(ctx context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	if t.done || !t.fenced {
		return nil, sdk.Faultf(sdk.CodeInternal, "changes for a transaction that was not fenced or has ended")
	}
	if t.a == nil {
		t.a = &applier{t: t}
	}
	a := t.a
	var bad []sdk.RecordError
	i := 0
	for _, seg := range ch.Segments {
		for k := range seg {
			if i%rowsPerLook == 0 && ctx.Err() != nil {
				return nil, t.w.fault("changes", ctx.Err())
			}
			c := &seg[k]
			if err := a.apply(c); err != nil {
				what := c.Op.String()
				if c.Schema != nil {
					what += " of a row of " + c.Schema.Name()
				}
				f := recordFault(what, err)
				if f == nil || !ofRecord(f.Code) {
					return nil, t.w.fault(what, err)
				}
				bad = append(bad, sdk.RecordError{Index: i, Err: f})
			}
			failpoint.Hit("rdbms.row")
			i++
		}
		if len(bad) > 0 {
			return bad, nil
		}
	}
	if a.nulled > 0 {
		t.w.cfg.Log.Warn("values that the target cannot hold were replaced", "policy", t.w.cfg.OnUnfit, "values", a.nulled)
		a.nulled = 0
	}
	return nil, nil
}

// ofRecord reports whether a code is about one change rather than the target.
func ofRecord(c sdk.Code) bool {
	switch c {
	case sdk.CodeConflict, sdk.CodeMissingRow, sdk.CodeUnfit, sdk.CodeTooLarge:
		return true
	}
	return false
}

func (a *applier) apply(c *sdk.Change) error {
	if c.Op == sdk.Alter {
		return a.t.alter(c.DDL)
	}
	if c.Schema == nil {
		return sdk.Faultf(sdk.CodeInternal, "%s without a schema", c.Op)
	}
	p, err := a.t.planOf(c.Schema)
	if err != nil {
		return err
	}
	a.enc.reset()
	a.args = a.args[:0]
	switch c.Op {
	case sdk.Upsert:
		return a.upsert(p, c)
	case sdk.Append:
		if len(p.key) > 0 {
			return sdk.Faultf(sdk.CodeInternal, "append to table %s, which has a key", p.table)
		}
		return a.upsert(p, c)
	case sdk.Patch:
		return a.patch(p, c, c.Key, c.Before)
	case sdk.Rekey:
		return a.rekey(p, c)
	case sdk.Remove:
		return a.remove(p, c)
	case sdk.Truncate:
		return a.t.c.run("DELETE FROM " + quote(p.table))
	case sdk.Reconcile:
		return a.reconcile(p, c)
	case sdk.MatchPatch, sdk.MatchRemove:
		return a.match(p, c)
	}
	return sdk.Faultf(sdk.CodeInternal, "%s of a row of %s: no such operation here", c.Op, c.Schema.Name())
}

// bind adds the masked values to the arguments.
func (a *applier) bind(p *plan, mask []byte, vals []batch.Value) error {
	for i := range vals {
		if mask != nil && mask[i] != '+' {
			continue
		}
		v, err := a.value(p, i, &vals[i])
		if err != nil {
			return err
		}
		a.push(v)
	}
	return nil
}

func (a *applier) push(v driver.Value) {
	a.args = append(a.args, driver.NamedValue{Ordinal: len(a.args) + 1, Value: v})
}

// value encodes one value, by policy where the target cannot hold it.
func (a *applier) value(p *plan, i int, v *batch.Value) (driver.Value, error) {
	col, to := &p.schema.Columns[i], &p.columns[i]
	out, err := a.enc.value(col, v)
	if err != nil {
		return nil, err
	}
	if _, digits := out.(string); !digits || !to.narrow || v.State != batch.Present {
		return out, nil
	}
	switch a.t.w.cfg.OnUnfit {
	case Null:
		if !to.notNull && !to.inKey {
			a.nulled++
			return nil, nil
		}
	case Truncate:
		if !to.inKey {
			a.nulled++
			return int64(1<<63 - 1), nil
		}
	}
	return nil, sdk.Faultf(sdk.CodeUnfit, "column %s of table %s cannot hold %s: above 9223372036854775807 its affinity makes a REAL of it", to.name, p.table, out).
		Suggest("declare the column without a type")
}

func (a *applier) upsert(p *plan, c *sdk.Change) error {
	vals, err := c.After.Values(a.after)
	if err != nil {
		return err
	}
	a.after = vals
	a.maskA = p.mask(append(a.maskA[:0], 'u'), vals)
	mask := a.maskA[1:]
	if p.apart {
		if n, err := a.set(p, c, c.Key, c.After); err != nil || n > 0 {
			return err
		}
		a.args = a.args[:0]
		a.maskA[0] = 'u'
	}
	full := c.After.Complete()
	s := p.full
	if s == nil || !full {
		if s, err = p.stmt(a.t.c, a.maskA, func() string { return p.upsertText(mask) }); err != nil {
			return err
		}
		if full {
			delete(p.stmts, string(a.maskA))
			p.full = s
		}
	}
	if err := a.bind(p, mask, vals); err != nil {
		return err
	}
	_, err = s.change(a.args)
	return err
}

// patch changes the columns that are present of the row with that key. A row
// that is not there is written where the change has all of it.
func (a *applier) patch(p *plan, c *sdk.Change, key []byte, keyImage batch.Image) error {
	n, err := a.set(p, c, key, keyImage)
	if err != nil || n > 0 {
		return err
	}
	if c.After.Complete() {
		a.args = a.args[:0]
		return a.upsert(p, c)
	}
	return a.missing(p, c)
}

// set updates the row with that key and returns the count of rows found.
func (a *applier) set(p *plan, c *sdk.Change, key []byte, keyImage batch.Image) (int64, error) {
	vals, err := c.After.Values(a.after)
	if err != nil {
		return 0, err
	}
	a.after = vals
	a.maskA = p.mask(append(a.maskA[:0], 'p'), vals)
	mask := a.maskA[1:]
	s, err := p.stmt(a.t.c, a.maskA, func() string { return p.updateText(mask) })
	if err != nil {
		return 0, err
	}
	if err := a.bind(p, mask, vals); err != nil {
		return 0, err
	}
	if err := a.bindKey(p, key, keyImage); err != nil {
		return 0, err
	}
	return s.change(a.args)
}

// rekey moves a row to its new key, with all columns that the change does not
// have. Where only the new row is there the move has happened before.
func (a *applier) rekey(p *plan, c *sdk.Change) error {
	err := a.patch(p, c, c.OldKey, c.Before)
	if f, ok := err.(*sdk.Fault); ok && f.Code == sdk.CodeMissingRow {
		a.args = a.args[:0]
		return a.patch(p, c, c.Key, c.After)
	}
	return err
}

func (a *applier) missing(p *plan, c *sdk.Change) error {
	return sdk.Faultf(sdk.CodeMissingRow, "%s of table %s: no row has the key %s, and the change does not hold the whole row", c.Op, p.table, a.printKey(p, c)).
		Suggest("the target lacks a row of the source: repair the key, or take a new snapshot of the table")
}

func (a *applier) remove(p *plan, c *sdk.Change) error {
	s, err := p.stmt(a.t.c, []byte("d"), p.deleteText)
	if err != nil {
		return err
	}
	if err := a.bindKey(p, c.Key, c.Before); err != nil {
		return err
	}
	_, err = s.change(a.args)
	return err
}

// bindKey adds the key's values: those of the image where it has them all, else
// those of the key bytes.
func (a *applier) bindKey(p *plan, key []byte, im batch.Image) error {
	if len(p.key) == 0 {
		return sdk.Faultf(sdk.CodeInternal, "change of table %s by key, and it has none", p.table)
	}
	if !im.IsZero() && im.Schema() == p.schema {
		vals, err := im.Values(a.before)
		if err != nil {
			return err
		}
		a.before = vals
		if hasKey(vals, p.key) {
			for _, k := range p.key {
				v, err := a.value(p, k, &vals[k])
				if err != nil {
					return err
				}
				a.push(v)
			}
			return nil
		}
	}
	vals, err := p.schema.KeyValues(key)
	if err != nil {
		return err
	}
	for i, k := range p.key {
		v, err := a.value(p, k, &vals[i])
		if err != nil {
			return err
		}
		a.push(v)
	}
	return nil
}

func hasKey(vals []batch.Value, key []int) bool {
	for _, k := range key {
		if !vals[k].Has() {
			return false
		}
	}
	return true
}

// printKey shows the key of a change for messages.
func (a *applier) printKey(p *plan, c *sdk.Change) string {
	key := c.Key
	if len(c.OldKey) > 0 {
		key = c.OldKey
	}
	vals, err := p.schema.KeyValues(key)
	if err != nil {
		return fmt.Sprintf("%x", key)
	}
	parts := make([]string, len(p.key))
	for i, k := range p.key {
		v, err := a.enc.value(&p.schema.Columns[k], &vals[i])
		if err != nil {
			return fmt.Sprintf("%x", key)
		}
		parts[i] = fmt.Sprintf("%s=%v", p.schema.Columns[k].Name, v)
	}
	return strings.Join(parts, ", ")
}
