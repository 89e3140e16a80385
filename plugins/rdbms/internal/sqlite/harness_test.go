package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Values of test rows beside numbers, strings, []byte and nil for NULL.
type mark string

const (
	absent    mark = "absent"
	unchanged mark = "unchanged"
)

type raw struct {
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
	case raw:
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

// change makes a change as the delivery engine hands it over. The schema is the
// one of the event's registry, as in life: a copy for each stream.
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

// path returns a file in a folder of its own.
func path(t testing.TB) string { return filepath.Join(t.TempDir(), "target.db") }

func writer(t testing.TB, cfg Config) *Writer {
	t.Helper()
	if cfg.BusyTimeout == 0 {
		cfg.BusyTimeout = 200 * time.Millisecond
	}
	w, err := New(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close(context.Background())) })
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
func next(lane int32, n uint64) sdk.Next {
	return sdk.Next{Point: sdk.Point{Writer: "w", Lane: lane, BatchNo: n, Position: at(n)}}
}

// write runs one transaction to its end.
func write(w *Writer, n sdk.Next, changes ...sdk.Change) error {
	ctx := context.Background()
	tx, err := w.Begin(ctx, []int32{n.Lane})
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck
	if err := tx.Fence(ctx, []sdk.Next{n}); err != nil {
		return err
	}
	bad, err := tx.Apply(ctx, &sdk.Changes{Lane: n.Lane, Segments: [][]sdk.Change{changes}})
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		return bad[0].Err
	}
	return tx.Commit(ctx)
}

// rows reads the file with database/sql, apart from the code under test. Values
// read TYPE:TEXT, bytes in hex.
func rows(t testing.TB, file, query string) []string {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	must(t, err)
	defer db.Close()
	r, err := db.Query(query)
	must(t, err)
	defer r.Close()
	cols, err := r.Columns()
	must(t, err)
	var out []string
	for r.Next() {
		v, p := make([]any, len(cols)), make([]any, len(cols))
		for i := range v {
			p[i] = &v[i]
		}
		must(t, r.Scan(p...))
		var parts []string
		for _, x := range v {
			switch x := x.(type) {
			case nil:
				parts = append(parts, "NULL")
			case []byte:
				parts = append(parts, fmt.Sprintf("x%x", x))
			case string:
				parts = append(parts, fmt.Sprintf("%q", x))
			case float64:
				parts = append(parts, fmt.Sprintf("real %v", x))
			default:
				parts = append(parts, fmt.Sprint(x))
			}
		}
		out = append(out, strings.Join(parts, " "))
	}
	must(t, r.Err())
	return out
}

// script runs statements on the file from outside.
func script(t testing.TB, file, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	must(t, err)
	defer db.Close()
	_, err = db.Exec(text)
	must(t, err)
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
