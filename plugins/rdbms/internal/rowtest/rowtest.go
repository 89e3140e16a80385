// Package rowtest makes rows and changes for the tests of the dialects, through
// the batch format as in life.
//
// What it does not do: it knows no dialect and is linked into no plugin.
package rowtest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Mark stands for a column of an image that has no value.
type Mark string

// The marks.
const (
	Absent    Mark = "absent"
	Unchanged Mark = "unchanged"
)

// Raw is a value that is none of the column's type.
type Raw struct {
	Name string
	Data []byte
}

// Put appends a value: a number, string, []byte, Mark, Raw, or nil for NULL.
func Put(b *batch.Builder, c *batch.Column, v any) {
	switch v := v.(type) {
	case nil:
		b.PutNull()
	case Mark:
		if v == Absent {
			b.PutAbsent()
		} else {
			b.PutUnchanged()
		}
	case Raw:
		b.PutRaw(v.Name, v.Data)
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

// Event makes the event of a row; nil leaves an image out.
func Event(t testing.TB, k batch.Kind, s *batch.Schema, before, after []any) batch.Event {
	t.Helper()
	b := batch.NewBuilder(batch.Limits{})
	Must(t, b.BeginTx(batch.Tx{Begins: true}))
	Must(t, b.BeginRow(k, s))
	for side, vals := range [][]any{before, after} {
		if vals == nil {
			continue
		}
		b.BeginImage(batch.Side(side))
		for i := range s.Columns {
			Put(b, &s.Columns[i], vals[i])
		}
		b.EndImage()
	}
	Must(t, b.EndRow())
	Must(t, b.EndTx(true, nil, []byte("p")))
	data, err := b.Finish()
	Must(t, err)
	reg := batch.NewRegistry()
	Must(t, reg.Add(s))
	var blk batch.Block
	Must(t, blk.Decode(data, reg, batch.Limits{}))
	var e batch.Event
	Must(t, blk.Event(0, &e))
	return e
}

// Vals is a row.
func Vals(v ...any) []any { return v }

// Change makes a change as the delivery engine hands it over.
func Change(t testing.TB, op sdk.Op, s *batch.Schema, before, after []any) sdk.Change {
	t.Helper()
	k := batch.Update
	switch {
	case after == nil:
		k = batch.Delete
	case before == nil:
		k = batch.Insert
	}
	e := Event(t, k, s, before, after)
	// One schema for all changes of it, so that they are alike, and nothing of the
	// block it came in.
	c := sdk.Change{Op: op, Kind: k, Schema: s, Key: bytes.Clone(e.Key), OldKey: bytes.Clone(e.OldKey)}
	if !e.Before.IsZero() {
		c.Before = batch.NewImage(s, bytes.Clone(e.Before.Data()))
	}
	if !e.After.IsZero() {
		c.After = batch.NewImage(s, bytes.Clone(e.After.Data()))
	}
	return c
}

// Must ends the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Keyed is a table with the key id.
func Keyed() *batch.Schema {
	return &batch.Schema{ID: 1, Table: "t", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{
		{Name: "id", Type: batch.Int64},
		{Name: "v", Type: batch.String, Length: 40, Flags: batch.Nullable},
		{Name: "n", Type: batch.Int32, Flags: batch.Nullable},
	}}
}

// Keyless is a table without a key.
func Keyless() *batch.Schema {
	return &batch.Schema{ID: 2, Table: "log", Columns: []batch.Column{
		{Name: "a", Type: batch.Int32, Flags: batch.Nullable}, {Name: "b", Type: batch.String, Length: 40, Flags: batch.Nullable},
	}}
}
