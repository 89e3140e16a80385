package sqlite

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func TestApply(t *testing.T) {
	pair := &batch.Schema{ID: 3, Table: "p", Key: []int{1, 0}, PrimaryKey: true, Columns: []batch.Column{{Name: "a", Type: batch.Int32}, {Name: "b", Type: batch.String}}}
	k, kl := keyed(), keyless()
	type changes = []sdk.Change
	one := func(op sdk.Op, s *batch.Schema, before, after []any) sdk.Change {
		return change(t, op, s, before, after)
	}
	for _, c := range []struct {
		name    string
		keyless string
		changes changes
		query   string
		want    []string
		code    sdk.Code // of the last change; "" = none
	}{
		{
			name: "insert of a row that exists replaces it", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Upsert, k, nil, vals(1, "b", nil))},
			query: "SELECT * FROM t", want: []string{`1 "b" NULL`},
		},
		{
			name: "upsert leaves columns that it lacks", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Upsert, k, nil, vals(1, unchanged, 2))},
			query: "SELECT * FROM t", want: []string{`1 "a" 2`},
		},
		{
			name: "patch of what is present", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Patch, k, vals(1, absent, absent), vals(absent, absent, nil))},
			query: "SELECT * FROM t", want: []string{`1 "a" NULL`},
		},
		{
			name: "patch that changes nothing", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Patch, k, vals(1, absent, absent), vals(absent, absent, absent))},
			query: "SELECT * FROM t", want: []string{`1 "a" 1`},
		},
		{name: "patch of a missing row", changes: changes{one(sdk.Patch, k, vals(1, absent, absent), vals(absent, "b", absent))}, code: sdk.CodeMissingRow},
		{
			name: "patch of a missing row that has all of it", changes: changes{one(sdk.Patch, k, vals(1, "a", 0), vals(1, "b", 2))},
			query: "SELECT * FROM t", want: []string{`1 "b" 2`},
		},
		{
			name: "remove", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Remove, k, vals(1, "a", 1), nil), one(sdk.Remove, k, vals(2, "a", 1), nil)},
			query: "SELECT * FROM t",
		},
		{
			name: "rekey", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Rekey, k, vals(1, "a", 1), vals(2, unchanged, 5))},
			query: "SELECT * FROM t", want: []string{`2 "a" 5`},
		},
		{
			name: "rekey seen twice", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Rekey, k, vals(1, "a", 1), vals(2, unchanged, 5)), one(sdk.Rekey, k, vals(1, "a", 1), vals(2, unchanged, 6))},
			query: "SELECT * FROM t", want: []string{`2 "a" 6`},
		},
		{name: "rekey of a missing row", changes: changes{one(sdk.Rekey, k, vals(1, "a", 1), vals(2, unchanged, 5))}, code: sdk.CodeMissingRow},
		{name: "rekey onto another row", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Upsert, k, nil, vals(2, "b", 2)), one(sdk.Rekey, k, vals(1, "a", 1), vals(2, "a", 1))}, code: sdk.CodeConflict},
		{
			name: "chain of keys", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Upsert, k, nil, vals(2, "b", 2)), one(sdk.Rekey, k, vals(2, "b", 2), vals(3, "b", 2)), one(sdk.Rekey, k, vals(1, "a", 1), vals(2, "a", 1))},
			query: "SELECT * FROM t ORDER BY id", want: []string{`2 "a" 1`, `3 "b" 2`},
		},
		{name: "truncate", changes: changes{one(sdk.Upsert, k, nil, vals(1, "a", 1)), {Op: sdk.Truncate, Schema: k}}, query: "SELECT * FROM t"},
		{
			name: "key in another order than the columns", changes: changes{one(sdk.Upsert, pair, nil, vals(1, "x")), one(sdk.Upsert, pair, nil, vals(2, "x")), one(sdk.Upsert, pair, nil, vals(1, "x")), one(sdk.Remove, pair, vals(2, "x"), nil)},
			query: "SELECT * FROM p", want: []string{`1 "x"`},
		},
		{
			name: "append", keyless: Append, changes: changes{one(sdk.Append, kl, nil, vals(1, nil)), one(sdk.Append, kl, nil, vals(1, nil))},
			query: "SELECT * FROM log", want: []string{"1 NULL", "1 NULL"},
		},
		{name: "delete under append", keyless: Append, changes: changes{one(sdk.MatchRemove, kl, vals(1, nil), nil)}, code: sdk.CodeRefused},
		{
			name: "one of two equal rows goes", keyless: FullRowMatch, changes: changes{one(sdk.Append, kl, nil, vals(1, nil)), one(sdk.Append, kl, nil, vals(1, nil)), one(sdk.MatchRemove, kl, vals(1, nil), nil)},
			query: "SELECT * FROM log", want: []string{"1 NULL"},
		},
		{
			name: "one of two equal rows changes", keyless: FullRowMatch, changes: changes{one(sdk.Append, kl, nil, vals(nil, nil)), one(sdk.Append, kl, nil, vals(nil, nil)), one(sdk.MatchPatch, kl, vals(nil, nil), vals(absent, "x"))},
			query: "SELECT * FROM log ORDER BY b", want: []string{"NULL NULL", `NULL "x"`},
		},
		{name: "change of a row that no row equals", keyless: FullRowMatch, changes: changes{one(sdk.MatchPatch, kl, vals(nil, "y"), vals(1, "x"))}, code: sdk.CodeMissingRow},
		{name: "delete by an image that lacks columns", keyless: FullRowMatch, changes: changes{one(sdk.MatchRemove, kl, vals(1, absent), nil)}, code: sdk.CodeMissingRow},
		{name: "keyless table", changes: changes{one(sdk.Append, kl, nil, vals(1, nil))}, code: sdk.CodeRefused},
		{
			name: "reconcile", changes: changes{
				one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Upsert, k, nil, vals(5, "b", 2)), one(sdk.Upsert, k, nil, vals(6, "b", 2)), one(sdk.Upsert, k, nil, vals(7, "b", 2)),
				{Op: sdk.Reconcile, Schema: k, Range: &batch.KeyRange{Lo: keyOf(t, 1), Hi: keyOf(t, 6)}, Seen: [][]byte{keyOf(t, 5)}},
			},
			query: "SELECT id FROM t", want: []string{"1", "5", "7"},
		},
		{
			name: "reconcile of the whole table", changes: changes{
				one(sdk.Upsert, k, nil, vals(1, "a", 1)), one(sdk.Upsert, k, nil, vals(5, "b", 2)),
				{Op: sdk.Reconcile, Schema: k, Range: &batch.KeyRange{}, Seen: [][]byte{keyOf(t, 5)}},
			},
			query: "SELECT id FROM t", want: []string{"5"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := path(t)
			w := writer(t, Config{Path: file, Keyless: c.keyless})
			claim(t, w, execution("x1", 1))
			for i, ch := range c.changes {
				err := write(w, next(0, uint64(i+1)), ch)
				switch last := i == len(c.changes)-1; {
				case last && c.code != "":
					if f := sdk.AsFault(err); f == nil || f.Code != c.code || f.Suggestion == "" {
						t.Errorf("got %v, want %s and what to do", err, c.code)
					}
					return
				case err != nil:
					t.Fatal(err)
				}
			}
			if got := rows(t, file, c.query); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Rows are told apart by their bytes, whatever collation the target has, and by
// the sign of zero.
func TestExactMatch(t *testing.T) {
	text := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{{Name: "id", Type: batch.String}, {Name: "v", Type: batch.Int32}}}
	file := path(t)
	script(t, file, "CREATE TABLE t (id TEXT COLLATE NOCASE, v INT); CREATE UNIQUE INDEX u ON t (id COLLATE BINARY)")
	w := writer(t, Config{Path: file, Keyless: FullRowMatch})
	claim(t, w, execution("x1", 1))
	must(t, write(w, next(0, 1), change(t, sdk.Upsert, text, nil, vals("a", 1)), change(t, sdk.Upsert, text, nil, vals("A", 2)),
		change(t, sdk.Patch, text, vals("A", absent), vals(absent, 3)), change(t, sdk.Upsert, text, nil, vals("a", 4))))
	if got := rows(t, file, "SELECT * FROM t ORDER BY id COLLATE BINARY"); !slices.Equal(got, []string{`"A" 3`, `"a" 4`}) {
		t.Errorf("got %q", got)
	}
	if got := rows(t, file, "EXPLAIN QUERY PLAN "+strings.Replace(newPlan(text, mustDescribe(t, w, "t")).deleteText(), "?", "'a'", 1)); !strings.Contains(got[0], "USING INDEX u") {
		t.Errorf("the key is not looked up by its index: %s", got[0])
	}
	real := &batch.Schema{ID: 2, Table: "r", Columns: []batch.Column{{Name: "f", Type: batch.Float64}, {Name: "s", Type: batch.String}}}
	all := []any{0.0, math.Copysign(0, -1), math.NaN(), 0.1, math.Inf(1)}
	n := uint64(1)
	for _, f := range all {
		n++
		must(t, write(w, next(0, n), change(t, sdk.Append, real, nil, vals(f, "x"))))
	}
	for i := range all {
		f := all[len(all)-1-i]
		n++
		must(t, write(w, next(0, n), change(t, sdk.MatchRemove, real, vals(f, "x"), nil)))
		if got := rows(t, file, "SELECT count(*) FROM r"); got[0] != itoa(len(all)-i-1) {
			t.Errorf("%s rows after removing %v", got[0], f)
		}
		if got := rows(t, file, "SELECT f FROM r"); i == 3 && got[0] != "real 0" {
			t.Errorf("%s is left, want 0", got[0])
		}
	}
}

func mustDescribe(t *testing.T, w *Writer, name string) *table {
	t.Helper()
	d, err := describe(w.conn, name)
	must(t, err)
	return d
}

func keyOf(t *testing.T, id int) []byte {
	return change(t, sdk.Upsert, keyed(), nil, vals(id, nil, nil)).Key
}

// Records that cannot be written are named by their place among all segments,
// as many as the segment has.
func TestRecordErrors(t *testing.T) {
	file := path(t)
	script(t, file, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE, n INTEGER)")
	w := writer(t, Config{Path: file})
	claim(t, w, execution("x1", 1))
	cons, err := w.Prepare(context.Background(), keyed())
	must(t, err)
	if len(cons.Uniques) != 1 || !slices.Equal(cons.Uniques[0].Columns, []int{1}) || cons.OneLane {
		t.Errorf("constraints %+v, want the unique key on v", cons)
	}
	must(t, write(w, next(0, 1), change(t, sdk.Upsert, keyed(), nil, vals(1, "a", 1))))
	ctx := context.Background()
	tx, err := w.Begin(ctx, []int32{0})
	must(t, err)
	must(t, tx.Fence(ctx, []sdk.Next{next(0, 2)}))
	up := func(id int, v string) sdk.Change { return change(t, sdk.Upsert, keyed(), nil, vals(id, v, 1)) }
	bad, err := tx.Apply(ctx, &sdk.Changes{Segments: [][]sdk.Change{{up(2, "b")}, {up(3, "a"), up(4, "c"), change(t, sdk.Patch, keyed(), vals(9, absent, absent), vals(absent, "z", absent))}, {up(5, "a")}}})
	must(t, err)
	if len(bad) != 2 || bad[0].Index != 1 || bad[0].Err.Code != sdk.CodeConflict || bad[1].Index != 3 || bad[1].Err.Code != sdk.CodeMissingRow {
		t.Errorf("got %+v", bad)
	}
	must(t, tx.Rollback(ctx))
	if got := rows(t, file, "SELECT id FROM t"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("rows %q", got)
	}
}

func TestUnfit(t *testing.T) {
	s := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{{Name: "id", Type: batch.Int64}, {Name: "u", Type: batch.Uint64, Flags: batch.Nullable}}}
	for policy, want := range map[string]string{ErrorPolicy: "unfit", DeadLetter: "unfit", Null: "NULL", Truncate: "9223372036854775807"} {
		file := path(t)
		script(t, file, "CREATE TABLE t (id INTEGER PRIMARY KEY, u BIGINT)")
		w := writer(t, Config{Path: file, OnUnfit: policy})
		claim(t, w, execution("x1", 1))
		err := write(w, next(0, 1), change(t, sdk.Upsert, s, nil, vals(1, uint64(1<<63))))
		got := ""
		if err != nil {
			got = string(sdk.AsFault(err).Code)
		} else {
			got = rows(t, file, "SELECT u FROM t")[0]
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", policy, got, want)
		}
	}
}

// Several lanes wait for one another and each has its own progress.
func TestLanes(t *testing.T) {
	file := path(t)
	w := writer(t, Config{Path: file, Lanes: 3, Keyless: Append})
	if c := claim(t, w, execution("x1", 1)); len(c.Points) != 3 {
		t.Fatalf("points %+v", c.Points)
	}
	done := make(chan error)
	for lane := range int32(3) {
		go func() {
			for n := uint64(1); n <= 20; n++ {
				if err := write(w, next(lane, n), line(t, int(lane))); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 3 {
		must(t, <-done)
	}
	if got := rows(t, file, "SELECT a, count(*) FROM log GROUP BY a"); !slices.Equal(got, []string{"0 20", "1 20", "2 20"}) {
		t.Errorf("rows %q", got)
	}
	ctx := context.Background()
	tx, err := w.Begin(ctx, []int32{0, 2})
	must(t, err)
	must(t, tx.Fence(ctx, []sdk.Next{next(0, 21), next(2, 21)}))
	must(t, tx.Commit(ctx))
	if got := rows(t, file, "SELECT lane, batch_no FROM datalink_progress"); !slices.Equal(got, []string{"-1 0", "0 21", "1 20", "2 21"}) {
		t.Errorf("progress %q", got)
	}
	// Another count needs one common position.
	ex := execution("x1", 1)
	ex.Lanes = 2
	if c := claim(t, w, ex); len(c.Points) != 3 || c.Lanes != 3 {
		t.Errorf("two lanes on three at different positions: got %+v, want the old three", c)
	}
	claim(t, w, execution("x1", 1))
	must(t, write(w, next(1, 21)))
	c, err := w.Claim(ctx, ex)
	must(t, err)
	if len(c.Points) != 2 || c.Lanes != 2 || c.Points[1].BatchNo != 21 || string(c.Points[1].Position.Source) != "21" {
		t.Errorf("points %+v", c.Points)
	}
}

func TestStateAndDeadLetters(t *testing.T) {
	file := path(t)
	w := writer(t, Config{Path: file, Lanes: 2})
	claim(t, w, execution("x1", 1))
	n := next(0, 1)
	n.State = []batch.StateItem{{Key: "a", Version: 2, Value: []byte{1}}, {Key: "gone", Version: 3, Deleted: true}, {Key: "empty", Version: 1}}
	n.SetAside = []sdk.DeadLetter{
		{Number: 1, Table: "t", Key: []byte{1}, Record: []byte{2}, Position: at(1), Fault: sdk.Fault{Code: sdk.CodeUnfit, Message: "m"}},
		{Number: 2, Table: "t"},
	}
	must(t, write(w, n))
	n = next(1, 1)
	n.State = []batch.StateItem{{Key: "a", Version: 1, Value: []byte{9}}, {Key: "gone", Version: 2, Value: []byte{9}}}
	n.Dropped = []uint64{2}
	must(t, write(w, n))
	c := claim(t, w, execution("x2", 2))
	if len(c.State) != 2 || c.State[0].Key != "a" || c.State[0].Version != 2 || c.State[0].Value[0] != 1 || c.State[1].Key != "empty" {
		t.Errorf("state %+v", c.State)
	}
	if len(c.DeadLetters) != 1 || c.DeadLetters[0].Fault.Code != sdk.CodeUnfit || c.DeadLetters[0].Record[0] != 2 || string(c.DeadLetters[0].Position.Source) != "1" {
		t.Errorf("dead letters %+v", c.DeadLetters)
	}
	must(t, w.Release(context.Background(), "uid-1"))
	must(t, w.Release(context.Background(), "uid-1"))
	if err := write(w, next(0, 2)); sdk.AsFault(err).Code != sdk.CodeFenced {
		t.Errorf("write after release: got %v", err)
	}
	ex := execution("y", 1)
	ex.TaskUID = "uid-2"
	if c := claim(t, w, ex); len(c.State)+len(c.DeadLetters) != 0 || !c.Points[0].Position.IsZero() {
		t.Errorf("a new task of the name finds %+v", c)
	}
}
