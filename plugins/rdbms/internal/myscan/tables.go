package myscan

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// native is what a scan.Table of this package carries.
type native struct{ columns []column }

// Tables implements scan.Database.
func (d *Database) Tables(ctx context.Context) ([]*scan.Table, error) {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return nil, d.fault("connect to "+d.name, err)
	}
	defer c.Close()
	var version string
	if err := c.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return nil, d.fault("ask for the version", err)
	}
	d.maria = strings.Contains(strings.ToLower(version), "mariadb")
	names, err := query(ctx, c, `SELECT t.TABLE_SCHEMA, t.TABLE_NAME FROM information_schema.TABLES t WHERE t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
		AND t.TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') AND (DATABASE() IS NULL OR t.TABLE_SCHEMA = DATABASE())`)
	if err != nil {
		return nil, d.fault("list the tables of "+d.name, err)
	}
	var out []*scan.Table
	for _, n := range names {
		if !d.sel.Filter.Wants(n[0].String, n[1].String) {
			continue
		}
		t, err := d.table(ctx, c, n[0].String, n[1].String)
		if err != nil {
			return nil, d.fault("look at "+n[0].String+"."+n[1].String, err)
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *scan.Table) int { return strings.Compare(a.Schema.Name(), b.Schema.Name()) })
	for i, t := range out {
		t.Schema.ID = uint32(i + 1)
		if out[i], err = d.sel.Apply(t); err != nil {
			return nil, err
		}
	}
	return out, d.sel.Unmatched()
}

func query(ctx context.Context, c *sql.Conn, text string, args ...any) ([][]sql.NullString, error) {
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]sql.NullString
	for rows.Next() {
		v := make([]sql.NullString, len(cols))
		dst := make([]any, len(cols))
		for i := range v {
			dst[i] = &v[i]
		}
		if err := rows.Scan(dst...); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

func (d *Database) table(ctx context.Context, c *sql.Conn, ns, name string) (*scan.Table, error) {
	srid := "0"
	if !d.maria {
		srid = "COALESCE(SRS_ID, 0)"
	}
	rows, err := query(ctx, c, `SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, COALESCE(CHARACTER_SET_NAME, ''), COALESCE(COLLATION_NAME, ''), EXTRA, COALESCE(GENERATION_EXPRESSION, ''),
		IS_NULLABLE, COALESCE(CHARACTER_MAXIMUM_LENGTH, 0), COALESCE(NUMERIC_PRECISION, 0), COALESCE(NUMERIC_SCALE, 0), COALESCE(DATETIME_PRECISION, 0), COALESCE(COLUMN_DEFAULT, ''), `+srid+`
		FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`, ns, name)
	if err != nil {
		return nil, err
	}
	s := &batch.Schema{Version: 1, Source: d.name, Namespace: ns, Table: name}
	nat := &native{}
	for _, r := range rows {
		df := def{
			name: r[0].String, base: strings.ToLower(r[1].String), full: r[2].String, charset: r[3].String, collation: r[4].String, extra: r[5].String, generated: r[6].String,
			nullable: r[7].String == "YES", length: number(r[8]), precision: number(r[9]), scale: number(r[10]), fraction: number(r[11]), fallback: r[12].String, srid: number(r[13]),
		}
		if d.maria && df.base == "longtext" && df.full == "json" {
			df.base = "json"
		}
		col, err := newColumn(&df, d.maria)
		if err != nil {
			return nil, sdk.Faultf(sdk.CodeUnknownTable, "%s.%s: %v", ns, name, err).Suggest("leave the table out, or the column by columns")
		}
		nat.columns = append(nat.columns, col)
		s.Columns = append(s.Columns, col.batch)
	}
	if err := d.keys(ctx, c, s); err != nil {
		return nil, err
	}
	t := &scan.Table{Schema: s, Backticks: true, Native: nat, Ordered: len(s.Key) > 0}
	for _, k := range s.Key {
		s.Columns[k].Flags &^= batch.Nullable
		t.Ordered = t.Ordered && nat.columns[k].ordered
	}
	return t, nil
}

func number(v sql.NullString) int64 {
	var n int64
	for _, d := range v.String {
		if d < '0' || d > '9' {
			return n
		}
		n = n*10 + int64(d-'0')
	}
	return n
}

// keys finds the primary and the unique keys. Indexes on prefixes and expressions
// identify no row.
func (d *Database) keys(ctx context.Context, c *sql.Conn, s *batch.Schema) error {
	rows, err := query(ctx, c, `SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0 ORDER BY INDEX_NAME = 'PRIMARY' DESC, INDEX_NAME, SEQ_IN_INDEX`, s.Namespace, s.Table)
	if err != nil {
		return err
	}
	var all []batch.Index
	bad := map[string]bool{}
	for _, r := range rows {
		name := r[0].String
		at := s.Column(r[1].String)
		if !r[1].Valid || r[2].Valid || at < 0 {
			bad[name] = true
		}
		if n := len(all); n == 0 || all[n-1].Name != name {
			all = append(all, batch.Index{Name: name})
		}
		ix := &all[len(all)-1]
		ix.Columns = append(ix.Columns, at)
	}
	all = slices.DeleteFunc(all, func(ix batch.Index) bool { return bad[ix.Name] })
	for _, ix := range all {
		nullable := slices.ContainsFunc(ix.Columns, func(i int) bool { return s.Columns[i].Flags&batch.Nullable != 0 })
		switch {
		case ix.Name == "PRIMARY":
			s.Key, s.PrimaryKey = ix.Columns, true
		case len(s.Key) == 0 && !nullable:
			s.Key = ix.Columns
		default:
			s.Uniques = append(s.Uniques, ix)
		}
	}
	return nil
}
