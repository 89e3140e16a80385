package pgscan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgtypes"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var _ scan.Source = (*Source)(nil)

// Source reads under one snapshot.
type Source struct {
	srv      *pgcat.Server
	snapshot string

	mu   sync.Mutex
	keep *pgconn.PgConn // holds the snapshot that this source exported
}

// New returns a Source under an exported snapshot; it stays valid while the
// session that exported it does.
func New(srv *pgcat.Server, snapshot string) *Source { return &Source{srv: srv, snapshot: snapshot} }

// Held is New for a snapshot that keep has exported; Close ends it.
func Held(srv *pgcat.Server, snapshot string, keep *pgconn.PgConn) *Source {
	return &Source{srv: srv, snapshot: snapshot, keep: keep}
}

// Begin returns a Source under a new snapshot and that snapshot as
// pg_current_snapshot prints it. Ready may refuse it: then another one is taken
// until ctx ends; pause is called in between.
func Begin(ctx context.Context, srv *pgcat.Server, ready func(snapshot string) bool, pause func(context.Context) error) (*Source, string, error) {
	for {
		c, err := srv.Connect(ctx)
		if err != nil {
			return nil, "", err
		}
		if err := begin(ctx, c, ""); err != nil {
			pgcat.Close(c)
			return nil, "", srv.Fault("take a snapshot", err)
		}
		rows, err := pgcat.Query(ctx, c, "SELECT pg_current_snapshot(), pg_export_snapshot()")
		if err != nil {
			pgcat.Close(c)
			return nil, "", srv.Fault("take a snapshot", err)
		}
		if text := string(rows[0][0]); ready == nil || ready(text) {
			return &Source{srv: srv, snapshot: string(rows[0][1]), keep: c}, text, nil
		}
		pgcat.Close(c)
		if err := pause(ctx); err != nil {
			return nil, "", err
		}
	}
}

func begin(ctx context.Context, c *pgconn.PgConn, snapshot string) error {
	sql := "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	if snapshot != "" {
		sql += "; SET TRANSACTION SNAPSHOT " + pgcat.Literal(snapshot)
	}
	return pgcat.Exec(ctx, c, sql)
}

// Open implements scan.Source.
func (s *Source) Open(ctx context.Context) (scan.Session, error) {
	c, err := s.srv.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := begin(ctx, c, s.snapshot); err != nil {
		pgcat.Close(c)
		return nil, s.srv.Fault("read under snapshot "+s.snapshot, err)
	}
	return &session{srv: s.srv, conn: c}, nil
}

// Close lets the snapshot go that the source has exported.
func (s *Source) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	pgcat.Close(s.keep)
	s.keep = nil
}

// Wrap makes a session of a connection whose transaction is the caller's.
func Wrap(srv *pgcat.Server, c *pgconn.PgConn) scan.Session { return &session{srv: srv, conn: c} }

// TableOf returns a table for package scan. Columns = nil reads all of them.
func TableOf(t *pgcat.Table, s *batch.Schema, where string) *scan.Table {
	ordered := true
	for _, k := range s.Key {
		i := slices.IndexFunc(t.Columns, func(c pgcat.Column) bool { return c.Name == s.Columns[k].Name })
		ordered = ordered && i >= 0 && t.Columns[i].Bytewise
	}
	return &scan.Table{Schema: s, Where: where, Ordered: ordered, Native: t}
}

type session struct {
	srv  *pgcat.Server
	conn *pgconn.PgConn
}

// Close ends the transaction with its connection.
func (s *session) Close() { pgcat.Close(s.conn) }

// Bound implements scan.Session.
func (s *session) Bound(ctx context.Context, t *scan.Table, lo, hi []byte, n int) ([]byte, error) {
	where, err := condition(t, lo, hi)
	if err != nil {
		return nil, err
	}
	keys := keyList(t.Schema)
	one := &batch.Schema{ID: t.Schema.ID, Namespace: t.Schema.Namespace, Table: t.Schema.Table, PrimaryKey: true}
	var cols []*pgtypes.Column
	for i, k := range t.Schema.Key {
		one.Columns = append(one.Columns, t.Schema.Columns[k])
		one.Key = append(one.Key, i)
		cols = append(cols, reader(t, k))
	}
	sql := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s OFFSET %d LIMIT 1", keys, from(t), where, keys, n-1)
	var key []byte
	err = s.query(ctx, sql, func(vals [][]byte) error {
		var err error
		key, err = scan.KeyOf(func(b *batch.Builder) error { return put(b, one, cols, vals) })
		return err
	})
	if err != nil {
		return nil, s.srv.Fault("find the chunks of "+t.Schema.Name(), err)
	}
	return key, nil
}

// Rows implements scan.Session.
func (s *session) Rows(ctx context.Context, t *scan.Table, lo, hi []byte, out *batch.Builder, done func() error) error {
	where, err := condition(t, lo, hi)
	if err != nil {
		return err
	}
	return s.rows(ctx, t, where, out, done)
}

func (s *session) rows(ctx context.Context, t *scan.Table, where string, out *batch.Builder, done func() error) error {
	names := make([]string, len(t.Schema.Columns))
	cols := make([]*pgtypes.Column, len(names))
	for i := range names {
		names[i], cols[i] = pgcat.Quote(t.Schema.Columns[i].Name), reader(t, i)
		if cols[i] == nil {
			return sdk.Faultf(sdk.CodeSchemaMismatch, "table %s has no column %s any more", t.Schema.Name(), t.Schema.Columns[i].Name).Retry()
		}
	}
	sql := "SELECT " + strings.Join(names, ", ") + " FROM " + from(t) + where
	if len(t.Schema.Key) > 0 {
		sql += " ORDER BY " + keyList(t.Schema)
	}
	err := s.query(ctx, sql, func(vals [][]byte) error {
		if err := put(out, t.Schema, cols, vals); err != nil {
			return err
		}
		return done()
	})
	if errors.Is(err, scan.ErrEnough) {
		return err
	}
	return s.srv.Fault("read "+t.Schema.Name(), err)
}

// Keys appends the rows with these keys.
func Keys(ctx context.Context, s scan.Session, t *scan.Table, keys [][]byte, out *batch.Builder) error {
	var list []string
	for _, k := range keys {
		v, err := literals(t.Schema, k)
		if err != nil {
			return err
		}
		list = append(list, v)
	}
	where := " WHERE (" + keyList(t.Schema) + ") IN (" + strings.Join(list, ", ") + ")"
	return s.(*session).rows(ctx, t, where, out, func() error { return nil })
}

func (s *session) query(ctx context.Context, sql string, row func([][]byte) error) error {
	r := s.conn.ExecParams(ctx, sql, nil, nil, nil, nil)
	for r.NextRow() {
		if err := row(r.Values()); err != nil {
			// What is left of the answer is not read: the connection ends.
			pgcat.Close(s.conn)
			return err
		}
	}
	_, err := r.Close()
	return err
}

func put(out *batch.Builder, s *batch.Schema, cols []*pgtypes.Column, vals [][]byte) error {
	if err := out.BeginRow(batch.Read, s); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
	for i, v := range vals {
		if v == nil {
			out.PutNull()
		} else if err := cols[i].Put(out, v); err != nil {
			out.DropRow()
			return sdk.Faultf(sdk.CodeCorruptSource, "column %s of %s: %v", s.Columns[i].Name, s.Name(), err)
		}
	}
	out.EndImage()
	return out.EndRow()
}

func reader(t *scan.Table, i int) *pgtypes.Column {
	for k := range t.Native.(*pgcat.Table).Columns {
		if c := &t.Native.(*pgcat.Table).Columns[k]; c.Name == t.Schema.Columns[i].Name {
			return c.Read
		}
	}
	return nil
}

// from names the table; children that inherit from it are tables of their own.
func from(t *scan.Table) string {
	n := t.Native.(*pgcat.Table)
	if n.Kind == 'p' {
		return n.Quoted()
	}
	return "ONLY " + n.Quoted()
}

func keyList(s *batch.Schema) string {
	names := make([]string, len(s.Key))
	for i, k := range s.Key {
		names[i] = pgcat.Quote(s.Columns[k].Name)
	}
	return strings.Join(names, ", ")
}

// condition is the WHERE clause of a range.
func condition(t *scan.Table, lo, hi []byte) (string, error) {
	var parts []string
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
		v, err := literals(t.Schema, b.key)
		if err != nil {
			return "", err
		}
		parts = append(parts, "("+keyList(t.Schema)+") "+b.op+" "+v)
	}
	if len(parts) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(parts, " AND "), nil
}

// literals prints a key as a row of SQL.
func literals(s *batch.Schema, key []byte) (string, error) {
	vals, err := s.KeyValues(key)
	if err != nil {
		return "", err
	}
	out := make([]string, len(vals))
	for i := range vals {
		col := &s.Columns[s.Key[i]]
		text, ok := pgtypes.AppendText(nil, col, &vals[i])
		if !ok {
			return "", sdk.Faultf(sdk.CodeRefused, "key column %s of %s has the type %s, which cannot bound a chunk", col.Name, s.Name(), col.Native)
		}
		out[i] = pgcat.Literal(string(text)) + "::" + col.Native
	}
	return "(" + strings.Join(out, ", ") + ")", nil
}
