package sqlite

import (
	"bytes"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// reconcile deletes the rows of a snapshot range whose keys were not among its
// rows. Bounds are compared by SQLite, so a bounded range needs key columns whose
// order here is that of every source.
func (a *applier) reconcile(p *plan, c *sdk.Change) error {
	if len(p.key) == 0 || c.Range == nil {
		return sdk.Faultf(sdk.CodeInternal, "range of table %s without a key or without bounds", p.table)
	}
	where, args, err := rangeWhere(p, c.Range.Lo, c.Range.Hi, true)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(c.Seen))
	for _, k := range c.Seen {
		vals, err := p.schema.KeyValues(k)
		if err != nil {
			return err
		}
		id, err := identity(p, vals)
		if err != nil {
			return err
		}
		seen[id] = true
	}
	rows, err := a.t.c.query(bg, "SELECT "+plainNames(p, p.key)+" FROM "+quote(p.table)+where, args...)
	if err != nil {
		return err
	}
	s, err := p.stmt(a.t.c, []byte("d"), p.deleteText)
	if err != nil {
		return err
	}
	for _, r := range rows {
		var id bytes.Buffer
		a.args = a.args[:0]
		for _, v := range r {
			appendIdentity(&id, v)
			a.push(v)
		}
		if seen[id.String()] {
			continue
		}
		if _, err := s.change(a.args); err != nil {
			return err
		}
	}
	return nil
}

// plainNames names columns as expressions: the driver would parse the text of
// columns that are declared as dates.
func plainNames(p *plan, places []int) string {
	names := make([]string, len(places))
	for i, k := range places {
		names[i] = "+" + quote(p.columns[k].name)
	}
	return strings.Join(names, ", ")
}

// rangeWhere is the condition lo < key <= hi. With alike set, bounds are refused
// where SQLite's order of the key may differ from the source's.
func rangeWhere(p *plan, lo, hi []byte, alike bool) (string, []any, error) {
	var where []string
	var args []any
	for _, b := range []struct {
		key []byte
		op  string
	}{{lo, ">"}, {hi, "<="}} {
		if len(b.key) == 0 {
			continue
		}
		vals, err := p.schema.KeyValues(b.key)
		if err != nil {
			return "", nil, err
		}
		marks := make([]string, len(vals))
		var enc encoder
		for i := range vals {
			col := &p.schema.Columns[p.key[i]]
			if alike && !ordered(col) {
				return "", nil, sdk.Faultf(sdk.CodeRefused, "range of table %s: key column %s of type %s is not ordered alike in SQLite and the source", p.table, col.Name, col.Type).
					Suggest("take the snapshot of this table in one piece")
			}
			v, err := enc.value(col, &vals[i])
			if err != nil {
				return "", nil, err
			}
			marks[i] = "?"
			args = append(args, v)
		}
		where = append(where, "("+p.keyNames(",")+") "+b.op+" ("+strings.Join(marks, ",")+")")
	}
	if len(where) == 0 {
		return "", nil, nil
	}
	return " WHERE " + strings.Join(where, " AND "), args, nil
}

// ordered reports whether stored values of a column sort as the source sorts them.
func ordered(c *batch.Column) bool {
	switch c.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Year, batch.Bytes:
		return true
	case batch.String:
		return c.Collation == "" || c.Collation == "binary" || c.Collation == "C"
	}
	return false
}

// identity writes a key so that equal keys give equal strings.
func identity(p *plan, vals []batch.Value) (string, error) {
	var id bytes.Buffer
	var enc encoder
	for i := range vals {
		v, err := enc.value(&p.schema.Columns[p.key[i]], &vals[i])
		if err != nil {
			return "", err
		}
		appendIdentity(&id, v)
	}
	return id.String(), nil
}
