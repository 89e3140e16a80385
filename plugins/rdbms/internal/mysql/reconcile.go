package mysql

import (
	"database/sql/driver"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// reconcile deletes the rows of a snapshot range whose keys were not among its
// rows. Bounds are compared by the target, so a bounded range needs key columns
// whose order here is the source's.
func (a *applier) reconcile(p *plan, c *sdk.Change) error {
	if len(p.key) == 0 || c.Range == nil {
		return sdk.Faultf(sdk.CodeInternal, "range of table %s without a key or without bounds", p.table)
	}
	where, err := a.rangeWhere(p, c.Range.Lo, c.Range.Hi, true)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(c.Seen))
	for _, k := range c.Seen {
		seen[string(k)] = true
	}
	var keys []string
	if keys, err = a.scanKeys(p, where); err != nil {
		return err
	}
	var gone []string
	for _, k := range keys {
		if seen[k] {
			continue
		}
		b, err := a.appendKey(nil, p, []byte(k), batch.Image{}, true)
		if err != nil {
			return err
		}
		gone = append(gone, string(b))
	}
	for len(gone) > 0 {
		n := min(len(gone), packetKeys)
		if err := a.exec("DELETE FROM " + p.table + " WHERE " + strings.Join(gone[:n], " OR ")); err != nil {
			return err
		}
		gone = gone[n:]
	}
	return nil
}

// scanKeys reads the keys of a part of the table as key bytes.
func (a *applier) scanKeys(p *plan, where string) ([]string, error) {
	part := &batch.Schema{ID: 1, Namespace: p.schema.Namespace, Table: p.schema.Table}
	for i, k := range p.key {
		part.Columns, part.Key = append(part.Columns, p.schema.Columns[k]), append(part.Key, i)
	}
	out := batch.NewBuilder(batch.Limits{})
	var keys []string
	err := scanRows(a.ctx, a.s, p, p.key, where, 0, func(row []driver.Value) error {
		out.Reset()
		if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
			return err
		}
		if err := out.BeginRow(batch.Read, part); err != nil {
			return err
		}
		out.BeginImage(batch.AfterImage)
		for i := range part.Columns {
			if err := load(out, &part.Columns[i], row[i]); err != nil {
				return err
			}
		}
		out.EndImage()
		if err := out.EndRow(); err != nil {
			return err
		}
		key, _ := out.LastKeys()
		keys = append(keys, string(key))
		return nil
	})
	return keys, err
}

// rangeWhere is the condition lo < key <= hi. With alike set, bounds are refused
// where the target's order of the key may differ from the source's.
func (a *applier) rangeWhere(p *plan, lo, hi []byte, alike bool) (string, error) {
	var where []string
	for _, b := range []struct {
		key       []byte
		op, equal string
	}{{lo, ">", ""}, {hi, "<", "="}} {
		if len(b.key) == 0 {
			continue
		}
		vals, err := p.schema.KeyValues(b.key)
		if err != nil {
			return "", err
		}
		var lits []string
		for i, k := range p.key {
			if alike && !ordered(&p.columns[k]) {
				return "", sdk.Faultf(sdk.CodeRefused, "range of table %s: key column %s of type %s is not ordered alike in the target and the source", p.table, p.columns[k].name, p.schema.Columns[k].Type).
					Suggest("take the snapshot of this table in one piece")
			}
			lit, err := a.appendValue(nil, p, k, &vals[i])
			if err != nil {
				return "", err
			}
			lits = append(lits, string(lit))
		}
		where = append(where, above(p, lits, b.op, b.equal))
	}
	return strings.Join(where, " AND "), nil
}

// above writes (a, b) > (x, y) column by column: the servers use an index for
// that, and none for a comparison of rows.
func above(p *plan, lits []string, op, equal string) string {
	var parts []string
	for i := range lits {
		var b []string
		for j := range i {
			b = append(b, p.columns[p.key[j]].name+"="+lits[j])
		}
		o := op
		if i == len(lits)-1 {
			o += equal
		}
		parts = append(parts, "("+strings.Join(append(b, p.columns[p.key[i]].name+o+lits[i]), " AND ")+")")
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// ordered reports whether the target sorts a key column as the source does.
func ordered(c *column) bool {
	switch c.source.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year,
		batch.Bytes, batch.Date, batch.DateTime, batch.Timestamp, batch.Time, batch.Decimal, batch.Float32, batch.Float64:
		return true
	case batch.String:
		return c.have != nil && strings.EqualFold(c.have.Collation, c.source.Collation) || c.source.Collation == "" && c.have != nil && strings.HasSuffix(c.have.Collation, "_bin")
	}
	return false
}

// unordered reports whether the key has a column of another order than at the
// source.
func unordered(s *batch.Schema, t *target.Table, m *target.Match) bool {
	for _, k := range s.Key {
		c := column{source: &s.Columns[k]}
		if at := m.Columns[k]; at >= 0 {
			c.have = &t.Columns[at]
		}
		if !ordered(&c) {
			return true
		}
	}
	return false
}
