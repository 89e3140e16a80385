package myscan

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

type session struct {
	d       *Database
	conn    *sql.Conn
	scratch []byte
}

// Close ends the transaction with its connection.
func (s *session) Close() { _ = s.conn.Close() }

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func columnOf(t *scan.Table, i int) *column {
	nat := t.Native.(*native)
	k := slices.IndexFunc(nat.columns, func(c column) bool { return c.batch.Name == t.Schema.Columns[i].Name })
	return &nat.columns[k]
}

// bounded reports whether the table's key can bound chunks.
func bounded(t *scan.Table) bool {
	for _, k := range t.Schema.Key {
		if !columnOf(t, k).bound {
			return false
		}
	}
	return len(t.Schema.Key) > 0
}

// Bound implements scan.Session.
func (s *session) Bound(ctx context.Context, t *scan.Table, lo, hi []byte, n int) ([]byte, error) {
	if !bounded(t) {
		return nil, nil
	}
	where, err := condition(t, lo, hi)
	if err != nil {
		return nil, err
	}
	one := &batch.Schema{ID: 1, Namespace: t.Schema.Namespace, Table: t.Schema.Table}
	var cols []*column
	for i, k := range t.Schema.Key {
		one.Columns = append(one.Columns, t.Schema.Columns[k])
		one.Key = append(one.Key, i)
		cols = append(cols, columnOf(t, k))
	}
	text := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d", list(t, t.Schema.Key), table(t), where, n-1)
	var key []byte
	err = s.query(ctx, text, cols, func(vals []sql.RawBytes) error {
		key, err = scan.KeyOf(func(b *batch.Builder) error { return s.put(b, one, cols, vals) })
		return err
	})
	if err != nil {
		return nil, s.d.fault("find the chunks of "+t.Schema.Name(), err)
	}
	return key, nil
}

// Rows implements scan.Session.
func (s *session) Rows(ctx context.Context, t *scan.Table, lo, hi []byte, out *batch.Builder, done func() error) error {
	where, err := condition(t, lo, hi)
	if err != nil {
		return err
	}
	all := make([]int, len(t.Schema.Columns))
	cols := make([]*column, len(all))
	for i := range all {
		all[i], cols[i] = i, columnOf(t, i)
	}
	text := "SELECT " + list(t, all) + " FROM " + table(t) + where
	if bounded(t) {
		text += " ORDER BY " + list(t, t.Schema.Key)
	}
	err = s.query(ctx, text, cols, func(vals []sql.RawBytes) error {
		if err := s.put(out, t.Schema, cols, vals); err != nil {
			return err
		}
		return done()
	})
	if errors.Is(err, scan.ErrEnough) {
		return err
	}
	return s.d.fault("read "+t.Schema.Name(), err)
}

// query runs a prepared statement: its answer comes over the binary protocol, in
// which floating point numbers are exact.
func (s *session) query(ctx context.Context, text string, cols []*column, row func([]sql.RawBytes) error) error {
	st, err := s.conn.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	defer st.Close()
	rows, err := st.QueryContext(ctx)
	if err != nil {
		return err
	}
	defer rows.Close()
	vals := make([]sql.RawBytes, len(cols))
	dst := make([]any, len(cols))
	for i := range vals {
		dst[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(dst...); err != nil {
			return err
		}
		if err := row(vals); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *session) put(out *batch.Builder, layout *batch.Schema, cols []*column, vals []sql.RawBytes) error {
	if err := out.BeginRow(batch.Read, layout); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
	for i, v := range vals {
		if v == nil {
			out.PutNull()
		} else if err := cols[i].put(out, v, &s.scratch); err != nil {
			out.DropRow()
			return sdk.Faultf(sdk.CodeCorruptSource, "table %s: %v", layout.Name(), err)
		}
	}
	out.EndImage()
	return out.EndRow()
}

func list(t *scan.Table, places []int) string {
	names := make([]string, len(places))
	for i, k := range places {
		names[i] = quote(t.Schema.Columns[k].Name)
	}
	return strings.Join(names, ", ")
}

func table(t *scan.Table) string { return quote(t.Schema.Namespace) + "." + quote(t.Schema.Table) }

// condition is the WHERE clause of a range. Rows are compared column by column:
// that is what the optimizer finds an index for.
func condition(t *scan.Table, lo, hi []byte) (string, error) {
	var parts []string
	if t.Where != "" {
		parts = append(parts, "("+t.Where+")")
	}
	for _, b := range []struct {
		key []byte
		lo  bool
	}{{lo, true}, {hi, false}} {
		if len(b.key) == 0 {
			continue
		}
		vals, err := t.Schema.KeyValues(b.key)
		if err != nil {
			return "", err
		}
		var names, lits []string
		for i, k := range t.Schema.Key {
			l, err := literal(&t.Schema.Columns[k], &vals[i])
			if err != nil {
				return "", sdk.Faultf(sdk.CodeRefused, "table %s: %v", t.Schema.Name(), err)
			}
			names, lits = append(names, quote(t.Schema.Columns[k].Name)), append(lits, l)
		}
		parts = append(parts, compare(names, lits, b.lo))
	}
	if len(parts) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(parts, " AND "), nil
}

// compare is names > lits, or names <= lits.
func compare(names, lits []string, greater bool) string {
	n := len(names)
	strict, loose := ">", ">="
	last := ">"
	if !greater {
		strict, loose, last = "<", "<=", "<="
	}
	text := names[n-1] + " " + last + " " + lits[n-1]
	for i := n - 2; i >= 0; i-- {
		text = fmt.Sprintf("%s %s %s AND (%s %s %s OR %s)", names[i], loose, lits[i], names[i], strict, lits[i], text)
	}
	return "(" + text + ")"
}
