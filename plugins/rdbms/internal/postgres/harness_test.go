package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Values of test rows beside numbers, strings, []byte and nil for NULL.
type mark string

const (
	absent    mark = "absent"
	unchanged mark = "unchanged"
)

type rawValue struct {
	name string
	data []byte
}

func put(b *batch.Builder, c *batch.Column, v any) {
	switch v := v.(type) {
	case nil:
		b.PutNull()
	case mark:
		if v == absent {
			b.PutAbsent()
		} else {
			b.PutUnchanged()
		}
	case rawValue:
		b.PutRaw(v.name, v.data)
	case int:
		b.PutInt(int64(v))
	case int64:
		b.PutInt(v)
	case int32:
		b.PutInt(int64(v))
	case uint64:
		b.PutUint(v)
	case float64:
		b.PutFloat(v)
	case string:
		b.PutString(v)
	case []byte:
		b.PutBytes(v)
	default:
		panic(fmt.Sprintf("column %s: test value of type %T", c.Name, v))
	}
}

// event makes the event of a row; nil leaves an image out.
func event(t testing.TB, k batch.Kind, s *batch.Schema, before, after []any) batch.Event {
	t.Helper()
	b := batch.NewBuilder(batch.Limits{})
	must(t, b.BeginTx(batch.Tx{Begins: true}))
	must(t, b.BeginRow(k, s))
	for side, vals := range [][]any{before, after} {
		if vals == nil {
			continue
		}
		b.BeginImage(batch.Side(side))
		for i := range s.Columns {
			put(b, &s.Columns[i], vals[i])
		}
		b.EndImage()
	}
	must(t, b.EndRow())
	must(t, b.EndTx(true, nil, []byte("p")))
	data, err := b.Finish()
	must(t, err)
	reg := batch.NewRegistry()
	must(t, reg.Add(s))
	var blk batch.Block
	must(t, blk.Decode(data, reg, batch.Limits{}))
	var e batch.Event
	must(t, blk.Event(0, &e))
	return e
}

func vals(v ...any) []any { return v }

// change makes a change as the delivery engine hands it over.
func change(t testing.TB, op sdk.Op, s *batch.Schema, before, after []any) sdk.Change {
	t.Helper()
	k := batch.Update
	switch {
	case after == nil:
		k = batch.Delete
	case before == nil:
		k = batch.Insert
	}
	e := event(t, k, s, before, after)
	return sdk.Change{Op: op, Kind: k, Schema: e.Schema, Key: e.Key, OldKey: e.OldKey, Before: e.Before, After: e.After}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server is a PostgreSQL of a test, with databases for its parts.
type server struct {
	*stack.Server
	t testing.TB
	n atomic.Int32
}

// start starts a server that survives the death of processes, not of the machine.
func start(t testing.TB, options ...string) *server {
	t.Helper()
	return &server{Server: stack.Start(t, "postgres", append([]string{"-c", "fsync=off"}, options...)...), t: t}
}

// db is a database of its own for a part of a test.
type db struct {
	s    *server
	name string
	url  string
}

func (s *server) db(t testing.TB) *db {
	t.Helper()
	name := fmt.Sprintf("d%d", s.n.Add(1))
	c, err := pgconn.Connect(context.Background(), s.url("postgres"))
	must(t, err)
	defer c.Close(context.Background()) //nolint:errcheck
	_, err = c.Exec(context.Background(), "CREATE DATABASE "+name).ReadAll()
	must(t, err)
	return &db{s: s, name: name, url: s.url(name)}
}

func (s *server) url(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", s.Addr(), database)
}

// rows runs statements through pgconn, apart from the sessions under test. Values
// are in text form with blanks between them.
func (d *db) rows(t testing.TB, query string) []string {
	t.Helper()
	c, err := pgconn.Connect(context.Background(), d.url)
	must(t, err)
	defer c.Close(context.Background()) //nolint:errcheck
	results, err := c.Exec(context.Background(), query).ReadAll()
	must(t, err)
	var out []string
	for _, r := range results[len(results)-1].Rows {
		var parts []string
		for _, v := range r {
			if v == nil {
				parts = append(parts, "NULL")
				continue
			}
			parts = append(parts, string(v))
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

func (d *db) list(t testing.TB, query string) string {
	t.Helper()
	return strings.Join(d.rows(t, query), ",")
}

func (d *db) writer(t testing.TB, cfg Config) *Writer {
	t.Helper()
	if cfg.URL == "" {
		cfg.URL = d.url
	}
	w, err := New(cfg)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func execution(id string, epoch uint64) sdk.Execution {
	return sdk.Execution{Task: "orders", TaskUID: "uid-1", StoreUID: "store-1", ID: id, Epoch: epoch, Writer: "w", Mapping: "m"}
}

func claim(t testing.TB, w *Writer, ex sdk.Execution) sdk.Claimed {
	t.Helper()
	c, err := w.Claim(context.Background(), ex)
	must(t, err)
	return c
}

func at(n uint64) sdk.Position {
	return sdk.Position{Format: "test", Version: 1, Source: fmt.Appendf(nil, "%d", n)}
}

// next is the progress of batch n in a lane.
func nextOf(lane int32, n uint64) sdk.Next {
	return sdk.Next{Point: sdk.Point{Writer: "w", Lane: lane, BatchNo: n, Position: at(n)}}
}

// write runs one transaction to its end.
func write(w *Writer, n sdk.Next, changes ...sdk.Change) error {
	return writeSegments(w, n, changes)
}

func writeSegments(w *Writer, n sdk.Next, segs ...[]sdk.Change) error {
	ctx := context.Background()
	tx, err := w.Begin(ctx, []int32{n.Lane})
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck
	if err := tx.Fence(ctx, []sdk.Next{n}); err != nil {
		return err
	}
	bad, err := tx.Apply(ctx, &sdk.Changes{Lane: n.Lane, Segments: segs})
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		return bad[0].Err
	}
	return tx.Commit(ctx)
}

func keyed() *batch.Schema {
	return &batch.Schema{ID: 1, Table: "t", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{
		{Name: "id", Type: batch.Int64}, {Name: "v", Type: batch.String, Flags: batch.Nullable}, {Name: "n", Type: batch.Int32, Flags: batch.Nullable},
	}}
}

func keyless() *batch.Schema {
	return &batch.Schema{ID: 2, Table: "log", Columns: []batch.Column{
		{Name: "a", Type: batch.Int32, Flags: batch.Nullable}, {Name: "b", Type: batch.String, Flags: batch.Nullable},
	}}
}

// eventually waits for a state.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 30 s: %s", what)
}
