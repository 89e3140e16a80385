package sqlite

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// match changes or deletes one row that equals the before image, in a table
// without a key.
func (a *applier) match(p *plan, c *sdk.Change) error {
	if a.t.w.cfg.Keyless != FullRowMatch {
		return sdk.Faultf(sdk.CodeRefused, "%s of a row of table %s, which has no key: keyless is %s, which only adds rows", c.Kind, p.table, a.t.w.cfg.Keyless).
			Suggest("set keyless: full-row-match, or leave the table out")
	}
	old, err := c.Before.Values(a.before)
	if err != nil {
		return err
	}
	a.before = old
	if !c.Before.Complete() {
		return sdk.Faultf(sdk.CodeMissingRow, "%s of a row of table %s, which has no key: the image before the change lacks columns, so that the row cannot be found", c.Kind, p.table).
			Suggest("set the source to log full row images")
	}
	a.maskB = p.mask(a.maskB[:0], old)
	if c.Op == sdk.MatchRemove {
		s, err := p.stmt(a.t.c, append([]byte{'x'}, a.maskB...), func() string { return p.matchDeleteText(a.maskB) })
		if err != nil {
			return err
		}
		if err := a.bindMatch(p, a.maskB, old); err != nil {
			return err
		}
		_, err = s.change(a.args)
		return err
	}
	vals, err := c.After.Values(a.after)
	if err != nil {
		return err
	}
	a.after = vals
	a.maskA = p.mask(append(a.maskA[:0], 'm'), vals)
	set := a.maskA[1:]
	s, err := p.stmt(a.t.c, append(a.maskA, a.maskB...), func() string { return p.matchUpdateText(set, a.maskB) })
	if err != nil {
		return err
	}
	if err := a.bind(p, set, vals); err != nil {
		return err
	}
	if err := a.bindMatch(p, a.maskB, old); err != nil {
		return err
	}
	n, err := s.change(a.args)
	if err != nil || n > 0 {
		return err
	}
	return sdk.Faultf(sdk.CodeMissingRow, "%s of a row of table %s, which has no key: no row equals the one before the change", c.Kind, p.table).
		Suggest("the target lacks a row of the source: take a new snapshot of the table")
}

// bindMatch binds the values of matchText.
func (a *applier) bindMatch(p *plan, mask []byte, vals []batch.Value) error {
	for i := range vals {
		if mask[i] != '+' {
			continue
		}
		v, err := a.value(p, i, &vals[i])
		if err != nil {
			return err
		}
		a.push(v)
		if classOf(&p.schema.Columns[i]) == asReal {
			a.push(v)
		}
	}
	return nil
}
