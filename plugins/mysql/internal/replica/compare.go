package replica

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Difference is what Compare found.
type Difference struct {
	Tables, Rows int
	Unknown      int // cells that were not compared
	Cells        int // cells that were
	Found        []string
}

// Compare compares the tables of a database with the source. The source must not
// change meanwhile.
func (r *Replica) Compare(ctx context.Context, c *sql.Conn, database string, skip func(table string) bool) (d Difference, err error) {
	for _, q := range []string{"SET NAMES utf8mb4", "SET time_zone = '+00:00'"} {
		if _, err := c.ExecContext(ctx, q); err != nil {
			return d, err
		}
	}
	rows, err := c.QueryContext(ctx, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')", database)
	if err != nil {
		return d, err
	}
	names, err := texts(rows)
	if err != nil {
		return d, err
	}
	seen := map[string]bool{}
	for _, n := range names {
		if skip != nil && skip(n) {
			continue
		}
		seen[database+"."+n] = true
		d.Tables++
		if err := r.table1(ctx, c, database, n, &d); err != nil {
			return d, fmt.Errorf("%s.%s: %w", database, n, err)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(r.Tables)) {
		table, ours := strings.CutPrefix(n, database+".")
		if ours && !seen[n] && (skip == nil || !skip(table)) && len(r.Tables[n].Rows) > 0 {
			d.Found = append(d.Found, fmt.Sprintf("%s is not at the source, the target has %d rows", n, len(r.Tables[n].Rows)))
		}
	}
	return d, nil
}

func texts(rows *sql.Rows) (out []string, err error) {
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// form is how the server is asked to print a column.
func form(c *batch.Column) alltypes.Column {
	f := alltypes.Column{Name: c.Name, Type: c.Native, Form: alltypes.Chars}
	switch c.Type {
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Bit:
		f.Form = alltypes.Number
	case batch.Float32, batch.Float64:
		f.Form = alltypes.Float
	case batch.String, batch.Enum, batch.Set, batch.JSON:
		f.Form = alltypes.Text
	case batch.Bytes, batch.Geometry, batch.Vector:
		f.Form = alltypes.Raw
	}
	return f
}

func (r *Replica) table1(ctx context.Context, c *sql.Conn, database, name string, d *Difference) error {
	t := r.Tables[database+"."+name]
	if t == nil || t.Schema == nil {
		var n int
		if err := c.QueryRowContext(ctx, "SELECT COUNT(*) FROM `"+database+"`.`"+name+"`").Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			d.Found = append(d.Found, fmt.Sprintf("%s.%s has %d rows at the source, the target has no such table", database, name, n))
		}
		return nil
	}
	rows, err := c.QueryContext(ctx, "SELECT LOWER(COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", database, name)
	if err != nil {
		return err
	}
	have, err := texts(rows)
	if err != nil {
		return err
	}
	var cols []alltypes.Column
	var sel []string
	for i := range t.Schema.Columns {
		col := form(&t.Schema.Columns[i])
		if !slices.Contains(have, strings.ToLower(col.Name)) {
			d.Found = append(d.Found, fmt.Sprintf("%s.%s: column %s is not at the source", database, name, col.Name))
			return nil
		}
		cols = append(cols, col)
		sel = append(sel, "HEX("+col.Expression()+")")
	}
	if len(cols) != len(have) {
		d.Found = append(d.Found, fmt.Sprintf("%s.%s: %d columns, the source has %d", database, name, len(cols), len(have)))
		return nil
	}
	rows, err = c.QueryContext(ctx, "SELECT "+strings.Join(sel, ", ")+" FROM `"+database+"`.`"+name+"`")
	if err != nil {
		return err
	}
	defer rows.Close()
	left := map[string]bool{}
	for k := range t.Rows {
		left[k] = true
	}
	dest, cells := make([]any, len(cols)), make([]sql.NullString, len(cols))
	for i := range dest {
		dest[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		want := map[string]alltypes.Printed{}
		for i := range cells {
			p := alltypes.Printed{Null: !cells[i].Valid}
			b, err := hex.DecodeString(cells[i].String)
			if err != nil {
				return err
			}
			p.Value = string(b)
			want[strings.ToLower(cols[i].Name)] = p
		}
		d.Rows++
		t.compareRow(database+"."+name, cols, want, left, d)
	}
	for _, k := range slices.Sorted(maps.Keys(left)) {
		d.Found = append(d.Found, fmt.Sprintf("%s.%s: a row that the source does not have: %s", database, name, show(t.Rows[k].Cells)))
	}
	return rows.Err()
}

func (t *Table) compareRow(name string, cols []alltypes.Column, want map[string]alltypes.Printed, left map[string]bool, d *Difference) {
	differs := func(row *Row) (first string, unknown int) {
		for _, col := range cols {
			w := want[strings.ToLower(col.Name)]
			g, ok := row.Cells[strings.ToLower(col.Name)]
			if !ok {
				unknown++
				continue
			}
			if s := alltypes.Same(&alltypes.Case{}, col, g, w); s != "" && first == "" {
				first = col.Name + ": " + s
			}
		}
		return first, unknown
	}
	candidates := slices.Sorted(maps.Keys(left))
	if len(t.Schema.Key) > 0 {
		candidates = []string{t.key(want)}
	}
	closest := "no row has its key"
	for _, k := range candidates {
		row := t.Rows[k]
		if row == nil || !left[k] {
			continue
		}
		diff, unknown := differs(row)
		if diff == "" {
			delete(left, k)
			d.Unknown += unknown
			d.Cells += len(cols) - unknown
			return
		}
		closest = diff
		if len(t.Schema.Key) > 0 {
			delete(left, k)
		}
	}
	d.Found = append(d.Found, fmt.Sprintf("%s: row %s: %s", name, show(want), closest))
}
