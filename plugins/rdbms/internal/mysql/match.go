package mysql

import (
	"math"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// match changes or deletes one row that equals the before image, in a table
// without a key.
func (a *applier) match(p *plan, c *sdk.Change) error {
	if a.w.cfg.Keyless != target.FullRowMatch {
		return sdk.Faultf(sdk.CodeRefused, "%s of a row of table %s, which has no key: keyless is %s, which only adds rows", c.Kind, p.table, a.w.cfg.Keyless).
			Suggest("set keyless: full-row-match, or leave the table out")
	}
	if !c.Before.Complete() {
		return sdk.Faultf(sdk.CodeMissingRow, "%s of a row of table %s, which has no key: the image before the change lacks columns, so that the row cannot be found", c.Kind, p.table).
			Suggest("set the source to log full row images")
	}
	old, err := c.Before.Values(a.before)
	if err != nil {
		return err
	}
	a.before = old
	b := a.text[:0]
	if c.Op == sdk.MatchRemove {
		b = append(append(append(b, "DELETE FROM "...), p.table...), " WHERE "...)
	} else {
		vals, err := c.After.Values(a.after)
		if err != nil {
			return err
		}
		a.after = vals
		b = append(append(append(b, "UPDATE "...), p.table...), " SET "...)
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
				return err
			}
		}
		b = append(b, " WHERE "...)
	}
	some := false
	for i := range old {
		if p.columns[i].name == "" {
			continue
		}
		if some {
			b = append(b, " AND "...)
		}
		some = true
		if b, err = a.appendSame(b, p, i, &old[i]); err != nil {
			return err
		}
	}
	b = append(b, " LIMIT 1"...)
	a.text = b
	n, err := a.s.matched(a.ctx, view(b))
	if err != nil || n > 0 || c.Op == sdk.MatchRemove {
		return err
	}
	return sdk.Faultf(sdk.CodeMissingRow, "%s of a row of table %s, which has no key: no row equals the one before the change", c.Kind, p.table).
		Suggest("the target lacks a row of the source: take a new snapshot of the table")
}

// appendSame appends the condition that a column holds the value: NULL equals
// NULL, texts are compared byte by byte whatever their collation, and -0 is not
// 0.
func (a *applier) appendSame(b []byte, p *plan, i int, v *batch.Value) ([]byte, error) {
	c := &p.columns[i]
	if v.State == batch.Null {
		return append(append(b, c.name...), " IS NULL"...), nil
	}
	from := len(b)
	b = append(append(b, c.name...), "<=>"...)
	at := len(b)
	b, err := a.appendValue(b, p, i, v)
	if err != nil {
		return b, err
	}
	lit := string(b[at:])
	switch {
	case c.to.base == "json" && c.have.Charset == "":
		b = append(append(append(append(b[:from], c.name...), "=CAST("...), lit...), " AS JSON)"...)
	case c.to.base == "geometry":
	case c.have.Charset != "" && c.have.Charset != "binary" && c.source.Type != batch.Enum && c.source.Type != batch.Set:
		// The column's own comparison lets an index help, the bytes decide.
		b = append(b, " AND CAST("...)
		b = append(append(b, c.name...), " AS BINARY)=CAST(CONVERT("...)
		b = append(append(append(b, lit...), " USING "...), c.have.Charset...)
		b = append(b, ") AS BINARY)"...)
	case c.to.base == "float":
		// A float and the double of its digits are compared as doubles: exact, since all
		// digits are written.
	}
	if c.floating() && v.State == batch.Present && v.Float64() == 0 {
		sign := "+"
		if math.Signbit(v.Float64()) {
			sign = "-"
		}
		b = append(append(append(append(b, " AND ATAN2("...), c.name...), ",-1)"...), map[string]string{"+": ">0", "-": "<0"}[sign]...)
	}
	return b, nil
}
