package litescan

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	_ "modernc.org/sqlite" // the driver

	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var _ scan.Database = (*Database)(nil)

// Database is a file whose tables are copied.
type Database struct {
	path string
	db   *sql.DB
	sel  scan.Selection
}

// NewDatabase returns the file at a path. It must be there.
func NewDatabase(path string, sel scan.Selection) (*Database, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: %v", err)
	}
	db.SetMaxIdleConns(0)
	return &Database{path: path, db: db, sel: sel}, nil
}

// Begin implements scan.Database; a session sees one moment by itself.
func (d *Database) Begin(context.Context) error { return nil }

// Close implements scan.Database.
func (d *Database) Close() { _ = d.db.Close() }

// Check implements scan.Database.
func (d *Database) Check(ctx context.Context) ([]sdk.Finding, error) {
	tables, err := d.Tables(ctx)
	if err != nil {
		f := sdk.AsFault(err)
		return []sdk.Finding{{Severity: sdk.Error, Subject: d.path, Message: f.Message, Advice: f.Suggestion}}, nil
	}
	return scan.CheckTables(tables), nil
}

func (d *Database) fault(what string, err error) error {
	var f *sdk.Fault
	if err == nil || errors.As(err, &f) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return sdk.Faultf(sdk.CodeUnavailable, "%s in %s: %v", what, d.path, err).Retry().Suggest("see that the file is there and is a SQLite database")
}

// Open implements scan.Source.
func (d *Database) Open(ctx context.Context) (scan.Session, error) {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return nil, d.fault("open", err)
	}
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		_ = c.Close()
		return nil, d.fault("begin to read", err)
	}
	return &session{d: d, conn: c}, nil
}

// Tables implements scan.Database.
func (d *Database) Tables(ctx context.Context) ([]*scan.Table, error) {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return nil, d.fault("open", err)
	}
	defer c.Close()
	rows, err := query(ctx, c, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
	if err != nil {
		return nil, d.fault("list the tables", err)
	}
	var out []*scan.Table
	for _, r := range rows {
		name := r[0].(string)
		if !d.sel.Filter.Wants("", name) && !d.sel.Filter.Wants("main", name) {
			continue
		}
		t, err := d.table(ctx, c, name)
		if err != nil {
			return nil, d.fault("look at table "+name, err)
		}
		t.Schema.ID = uint32(len(out) + 1)
		if t, err = d.sel.Apply(t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, d.sel.Unmatched()
}

func query(ctx context.Context, c *sql.Conn, text string, args ...any) ([][]any, error) {
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]any
	for rows.Next() {
		v := make([]any, len(cols))
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

func (d *Database) table(ctx context.Context, c *sql.Conn, name string) (*scan.Table, error) {
	s := &batch.Schema{Version: 1, Source: d.path, Table: name}
	rows, err := query(ctx, c, `SELECT name, type, "notnull", coalesce(dflt_value, ''), pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid`, name)
	if err != nil {
		return nil, err
	}
	type part struct{ place, at int64 }
	var key []part
	for _, r := range rows {
		if r[5].(int64) == 1 {
			continue // of a virtual table
		}
		col := columnOf(r[0].(string), r[1].(string))
		col.Default = fmt.Sprint(r[3])
		if r[2].(int64) == 0 {
			col.Flags |= batch.Nullable
		}
		if h := r[5].(int64); h > 1 {
			col.Flags |= batch.Generated
			if h == 2 {
				col.Flags |= batch.Virtual
			}
		}
		if pk := r[4].(int64); pk > 0 {
			key = append(key, part{pk, int64(len(s.Columns))})
			col.Flags &^= batch.Nullable
		}
		s.Columns = append(s.Columns, col)
	}
	slices.SortFunc(key, func(a, b part) int { return int(a.place - b.place) })
	for _, k := range key {
		s.Key, s.PrimaryKey = append(s.Key, int(k.at)), true
	}
	indexes, err := query(ctx, c, `SELECT name, origin FROM pragma_index_list(?) WHERE "unique" = 1 AND partial = 0 ORDER BY name`, name)
	if err != nil {
		return nil, err
	}
	for _, ix := range indexes {
		if ix[1].(string) == "pk" {
			continue
		}
		cols, err := query(ctx, c, "SELECT name FROM pragma_index_info(?) ORDER BY seqno", ix[0])
		if err != nil {
			return nil, err
		}
		u := batch.Index{Name: ix[0].(string)}
		for _, x := range cols {
			at := -1
			if n, ok := x[0].(string); ok {
				at = s.Column(n)
			}
			u.Columns = append(u.Columns, at)
		}
		if !slices.Contains(u.Columns, -1) {
			s.Uniques = append(s.Uniques, u)
		}
	}
	return &scan.Table{Schema: s}, nil
}

// columnOf decides by the declared type, as SQLite's rules of affinity do.
func columnOf(name, declared string) batch.Column {
	c := batch.Column{Name: name, Native: declared}
	up := strings.ToUpper(declared)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(up, w) })
	}
	switch {
	case has("INT"):
		c.Type = batch.Int64
	case has("CHAR", "CLOB", "TEXT", "DATE", "TIME", "JSON", "UUID"):
		c.Type = batch.String
	case has("BLOB"):
		c.Type = batch.Bytes
	case has("REAL", "FLOA", "DOUB"):
		c.Type = batch.Float64
	case has("BOOL"):
		c.Type = batch.Int64
	case has("DEC", "NUM"):
		c.Type = batch.Decimal
	default:
		c.Type = batch.Native
		c.Flags |= batch.TextValue
		if declared == "" {
			c.Native = "any"
		}
	}
	return c
}

type session struct {
	d    *Database
	conn *sql.Conn
}

// Close ends the transaction with its connection.
func (s *session) Close() {
	_, _ = s.conn.ExecContext(context.Background(), "ROLLBACK")
	_ = s.conn.Close()
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// names lists columns as expressions: the driver would parse the text of columns
// that are declared as dates.
func names(s *batch.Schema, places []int, plus string) string {
	out := make([]string, len(places))
	for i, k := range places {
		out[i] = plus + quote(s.Columns[k].Name)
	}
	return strings.Join(out, ", ")
}

// Bound implements scan.Session.
func (s *session) Bound(ctx context.Context, t *scan.Table, lo, hi []byte, n int) ([]byte, error) {
	where, args, err := condition(t, lo, hi)
	if err != nil {
		return nil, err
	}
	one := &batch.Schema{ID: 1, Table: t.Schema.Table}
	for i, k := range t.Schema.Key {
		one.Columns, one.Key = append(one.Columns, t.Schema.Columns[k]), append(one.Key, i)
	}
	text := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT 1 OFFSET %d", names(t.Schema, t.Schema.Key, "+"), quote(t.Schema.Table), where, names(t.Schema, t.Schema.Key, ""), n-1)
	rows, err := query(ctx, s.conn, text, args...)
	if err != nil || len(rows) == 0 {
		return nil, s.d.fault("find the chunks of "+t.Schema.Table, err)
	}
	return scan.KeyOf(func(b *batch.Builder) error { return put(b, one, rows[0]) })
}

// Rows implements scan.Session.
func (s *session) Rows(ctx context.Context, t *scan.Table, lo, hi []byte, out *batch.Builder, done func() error) error {
	where, args, err := condition(t, lo, hi)
	if err != nil {
		return err
	}
	all := make([]int, len(t.Schema.Columns))
	for i := range all {
		all[i] = i
	}
	text := "SELECT " + names(t.Schema, all, "+") + " FROM " + quote(t.Schema.Table) + where
	if len(t.Schema.Key) > 0 {
		text += " ORDER BY " + names(t.Schema, t.Schema.Key, "")
	}
	rows, err := s.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return s.d.fault("read "+t.Schema.Table, err)
	}
	defer rows.Close()
	vals := make([]any, len(all))
	dst := make([]any, len(all))
	for i := range vals {
		dst[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(dst...); err != nil {
			return s.d.fault("read "+t.Schema.Table, err)
		}
		if err := put(out, t.Schema, vals); err != nil {
			return err
		}
		if err := done(); err != nil {
			return err
		}
	}
	return s.d.fault("read "+t.Schema.Table, rows.Err())
}

func put(out *batch.Builder, s *batch.Schema, vals []any) error {
	if err := out.BeginRow(batch.Read, s); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
	for i, v := range vals {
		value(out, &s.Columns[i], v)
	}
	out.EndImage()
	if err := out.EndRow(); err != nil {
		return sdk.Faultf(sdk.CodeUnfit, "%v", err).Suggest("a key that holds NULL or values of several storage classes identifies no row; mend it at the source")
	}
	return nil
}

func value(out *batch.Builder, c *batch.Column, v any) {
	switch v := v.(type) {
	case nil:
		out.PutNull()
	case int64:
		switch c.Type {
		case batch.Int64:
			out.PutInt(v)
		case batch.Decimal, batch.Native:
			out.PutBytes(strconv.AppendInt(nil, v, 10))
		case batch.Float64:
			// An INTEGER under REAL affinity cannot be; a generated column has any class.
			out.PutFloat(float64(v))
		default:
			out.PutRaw("integer", strconv.AppendInt(nil, v, 10))
		}
	case float64:
		text := strconv.AppendFloat(nil, v, 'g', -1, 64)
		switch {
		case c.Type == batch.Float64:
			out.PutFloat(v)
		case c.Type == batch.Decimal && !math.IsInf(v, 0):
			out.PutBytes(strconv.AppendFloat(nil, v, 'f', -1, 64))
		case c.Type == batch.Native:
			out.PutBytes(text)
		default:
			out.PutRaw("real", text)
		}
	case string:
		switch {
		case !utf8.ValidString(v):
			out.PutRaw("utf8", []byte(v))
		case c.Type == batch.String || c.Type == batch.Native:
			out.PutString(v)
		default:
			out.PutRaw("text", []byte(v))
		}
	case []byte:
		if c.Type == batch.Bytes {
			out.PutBytes(v)
		} else {
			out.PutRaw("blob", v)
		}
	default:
		out.PutRaw(fmt.Sprintf("%T", v), fmt.Append(nil, v))
	}
}

func condition(t *scan.Table, lo, hi []byte) (string, []any, error) {
	var parts []string
	var args []any
	if t.Where != "" {
		parts = append(parts, "("+t.Where+")")
	}
	for _, b := range []struct {
		key []byte
		op  string
	}{{lo, ">"}, {hi, "<="}} {
		if len(b.key) == 0 {
			continue
		}
		vals, err := t.Schema.KeyValues(b.key)
		if err != nil {
			return "", nil, err
		}
		marks := make([]string, len(vals))
		for i := range vals {
			marks[i] = "?"
			args = append(args, argument(&t.Schema.Columns[t.Schema.Key[i]], &vals[i]))
		}
		parts = append(parts, "("+names(t.Schema, t.Schema.Key, "")+") "+b.op+" ("+strings.Join(marks, ",")+")")
	}
	if len(parts) == 0 {
		return "", nil, nil
	}
	return " WHERE " + strings.Join(parts, " AND "), args, nil
}

// argument is a key value as SQLite stores it.
func argument(c *batch.Column, v *batch.Value) any {
	if class, data, raw := v.Raw(); raw {
		switch class {
		case "integer":
			n, _ := strconv.ParseInt(string(data), 10, 64)
			return n
		case "real":
			f, _ := strconv.ParseFloat(string(data), 64)
			return f
		case "blob":
			return data
		}
		return string(data)
	}
	switch c.Type {
	case batch.Int64:
		return v.Int64()
	case batch.Float64:
		return v.Float64()
	case batch.Bytes:
		return v.Bytes()
	case batch.Decimal, batch.Native:
		if n, err := strconv.ParseInt(string(v.Bytes()), 10, 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(string(v.Bytes()), 64); err == nil {
			return f
		}
	}
	return string(v.Bytes())
}
