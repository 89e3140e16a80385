package mysql

import (
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// appendKey appends the key's values: those of the image where it has them all,
// else those of the key bytes. With names it is a condition, without them the
// values alone.
func (a *applier) appendKey(b []byte, p *plan, key []byte, im batch.Image, names bool) ([]byte, error) {
	if len(p.key) == 0 {
		return b, sdk.Faultf(sdk.CodeInternal, "change of table %s by key, and it has none", p.table)
	}
	var vals []batch.Value
	var err error
	byPlace := !im.IsZero() && im.Schema() == p.schema
	if byPlace {
		if vals, err = im.Values(a.before); err != nil {
			return b, err
		}
		a.before = vals
		for _, k := range p.key {
			byPlace = byPlace && vals[k].Has()
		}
	}
	if !byPlace {
		if vals, err = p.schema.KeyValues(key); err != nil {
			return b, err
		}
	}
	if names && len(p.key) > 1 {
		b = append(b, '(')
	}
	for i, k := range p.key {
		v := &vals[min(i, len(vals)-1)]
		if byPlace {
			v = &vals[k]
		}
		if i > 0 {
			b = append(b, " AND "...)
		}
		if names {
			b = append(append(b, p.columns[k].name...), '=')
		}
		if b, err = a.appendValue(b, p, k, v); err != nil {
			return b, err
		}
	}
	if names && len(p.key) > 1 {
		b = append(b, ')')
	}
	return b, nil
}

// patches changes columns of single rows, several statements in a packet. Of what
// the server then says that it matched no row, the change may hold the whole
// row, or the row was moved before.
func (a *applier) patches(p *plan, seg []sdk.Change, at []int32) error {
	for len(at) > 0 {
		a.text, a.rows = a.text[:0], a.rows[:0]
		n := 0
		for ; n < len(at) && len(a.text) < packetText-4096 && len(a.rows) < packetSingles; n++ {
			c := &seg[at[n]]
			from := len(a.text)
			if from > 0 {
				a.text = append(a.text, ';')
			}
			var err error
			if a.text, err = a.appendUpdate(a.text, p, c, c.Op == sdk.Rekey); err != nil {
				a.text = a.text[:from]
				if err := a.refuse(c, int(at[n]), err); err != nil {
					return err
				}
				continue
			}
			a.rows = append(a.rows, at[n])
		}
		at = at[n:]
		if len(a.rows) == 0 {
			continue
		}
		a.w.cfg.Stats.Statements.Add(1)
		counts, err := a.s.change(a.ctx, view(a.text))
		if err != nil {
			if recordFault("", err) == nil || lost(err) {
				return err
			}
			if err := a.patchEach(p, seg); err != nil {
				return err
			}
			continue
		}
		for i, k := range a.rows {
			if counts[i] > 0 {
				continue
			}
			if err := a.absent(p, &seg[k], int(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// patchEach runs the statements of a.rows one by one, to know which is refused.
// Those that took effect before have the same effect again.
func (a *applier) patchEach(p *plan, seg []sdk.Change) error {
	for _, k := range a.rows {
		c := &seg[k]
		b, err := a.appendUpdate(nil, p, c, c.Op == sdk.Rekey)
		var n int64
		if err == nil {
			n, err = a.s.matched(a.ctx, view(b))
		}
		if err == nil && n == 0 {
			err = a.absent(p, c, int(k))
			if err != nil {
				return err
			}
			continue
		}
		if err != nil {
			if err := a.refuse(c, int(k), err); err != nil {
				return err
			}
		}
	}
	return nil
}

// absent deals with a change whose row is not there.
func (a *applier) absent(p *plan, c *sdk.Change, at int) error {
	if c.Op == sdk.Rekey {
		// Where only the new row is there the move has happened before.
		b, err := a.appendUpdate(nil, p, c, false)
		if err != nil {
			return a.refuse(c, at, err)
		}
		n, err := a.s.matched(a.ctx, view(b))
		if err != nil {
			return a.refuse(c, at, err)
		}
		if n > 0 {
			return nil
		}
	}
	if !c.After.Complete() {
		return a.refuse(c, at, target.MissingRow(c))
	}
	vals, err := c.After.Values(a.after)
	if err != nil {
		return err
	}
	a.after = vals
	b, err := a.appendRow([]byte(p.full.head), p, vals)
	if err == nil {
		err = a.exec(view(append(b, p.full.tail...)))
	}
	if err != nil {
		return a.refuse(c, at, err)
	}
	return nil
}

// appendUpdate appends the statement that sets the columns which the change has
// of the row with its key; old: with the key it had.
func (a *applier) appendUpdate(b []byte, p *plan, c *sdk.Change, old bool) ([]byte, error) {
	b = append(append(append(b, "UPDATE "...), p.table...), " SET "...)
	vals, err := c.After.Values(a.after)
	if err != nil {
		return b, err
	}
	a.after = vals
	some := false
	for i := range vals {
		if p.columns[i].name == "" || vals[i].State == batch.Absent || vals[i].State == batch.Unchanged {
			continue
		}
		if some {
			b = append(b, ',')
		}
		some = true
		b = append(append(b, p.columns[i].name...), '=')
		if b, err = a.appendValue(b, p, i, &vals[i]); err != nil {
			return b, err
		}
	}
	if !some {
		n := p.columns[p.key[0]].name
		b = append(append(append(b, n...), '='), n...)
	}
	b = append(b, " WHERE "...)
	if old {
		return a.appendKey(b, p, c.OldKey, c.Before, true)
	}
	if c.Op == sdk.Rekey {
		return a.appendKey(b, p, c.Key, c.After, true)
	}
	return a.appendKey(b, p, c.Key, c.Before, true)
}
