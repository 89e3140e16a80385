package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func segs(s ...[]sdk.Change) [][]sdk.Change { return s }

func seg(c ...sdk.Change) []sdk.Change { return c }

// two has a key of two columns, and one beside it.
func two() *batch.Schema {
	return &batch.Schema{ID: 3, Namespace: "my-shop", Table: "Order \"x\"", Key: []int{1, 0}, PrimaryKey: true, Columns: []batch.Column{
		{Name: "key", Type: batch.String}, {Name: "order", Type: batch.Int32}, {Name: "Sum", Type: batch.Decimal, Precision: 10, Scale: 2, Flags: batch.Nullable},
	}}
}

func TestApply(t *testing.T) {
	s := start(t)
	up := func(t *testing.T, sc *batch.Schema, v ...any) sdk.Change {
		return change(t, sdk.Upsert, sc, nil, v)
	}
	patch := func(t *testing.T, sc *batch.Schema, before, after []any) sdk.Change {
		return change(t, sdk.Patch, sc, before, after)
	}
	del := func(t *testing.T, sc *batch.Schema, v ...any) sdk.Change { return change(t, sdk.Remove, sc, v, nil) }
	const read = "SELECT id, v, n FROM t ORDER BY id"
	for _, c := range []struct {
		name   string
		cfg    Config
		before string // statements on the target
		do     func(t *testing.T) [][]sdk.Change
		query  string
		want   string
		fails  string // text of the error
	}{
		{
			name: "rows are written, replaced and deleted", query: read, want: "1 b NULL,3 c 3",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(up(t, sc, 1, "a", 1), up(t, sc, 2, "b", 2), up(t, sc, 3, "c", 3)), seg(up(t, sc, 1, "b", nil), del(t, sc, 2, "b", 2), del(t, sc, 9, "b", 2)))
			},
		},
		{
			name: "names of all kinds, a key in another order (B063, B064)", query: `SELECT * FROM "my-shop"."Order ""x""" ORDER BY 1`, want: "a 1 1.50,b 2 NULL",
			do: func(t *testing.T) [][]sdk.Change {
				sc := two()
				return segs(seg(up(t, sc, "a", 1, "1.50"), up(t, sc, "b", 2, "7"), up(t, sc, "c", 3, "7")), seg(up(t, sc, "b", 2, nil), del(t, sc, "c", 3, "7")))
			},
		},
		{
			name: "absent and unchanged columns stay (B083)", query: read, want: "1 a 9,2 z NULL",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(up(t, sc, 1, "a", 1), up(t, sc, 2, "b", 2)), seg(patch(t, sc, vals(1, absent, absent), vals(1, unchanged, 9)), patch(t, sc, vals(2, absent, absent), vals(2, "z", nil))))
			},
		},
		{
			name: "a part of a row that is not there (B079)", fails: "no row has the key",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(up(t, sc, 1, "a", 1)), seg(patch(t, sc, vals(1, absent, absent), vals(1, "b", absent)), patch(t, sc, vals(7, absent, absent), vals(7, "b", absent))))
			},
		},
		{
			name: "a whole row that is not there is written", query: read, want: "7 b 7",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(patch(t, sc, vals(7, "a", 7), vals(7, "b", 7))))
			},
		},
		{
			name: "a chain of keys, twice (B071, B077)", query: read, want: "2 a 1,3 b 2,4 c 3",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				move := func(from, to int, v string, n int) []sdk.Change {
					return seg(change(t, sdk.Rekey, sc, vals(from, v, n), vals(to, v, n)))
				}
				rows := seg(up(t, sc, 1, "a", 1), up(t, sc, 2, "b", 2), up(t, sc, 3, "c", 3))
				return segs(rows, move(3, 4, "c", 3), move(2, 3, "b", 2), move(1, 2, "a", 1), seg(change(t, sdk.Rekey, sc, vals(9, absent, absent), vals(4, absent, 3))))
			},
		},
		{
			name: "two rows exchange a unique value", before: "CREATE TABLE t (id bigint PRIMARY KEY, v text UNIQUE, n int)", query: read, want: "1 b 1,2 a 2,3 c 3",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(up(t, sc, 1, "a", 1), up(t, sc, 2, "b", 2), up(t, sc, 3, "c", 3)), seg(patch(t, sc, vals(1, absent, absent), vals(1, "b", absent))), seg(up(t, sc, 2, "a", 2)))
			},
		},
		{
			name: "another row has the unique value", before: "CREATE TABLE t (id bigint PRIMARY KEY, v text UNIQUE, n int); INSERT INTO t VALUES (5, 'b', 5)", fails: "another row has the value already",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(up(t, sc, 1, "a", 1), up(t, sc, 2, "b", 2)))
			},
		},
		{
			name: "an upsert matches the primary key alone", before: "CREATE TABLE t (id bigint PRIMARY KEY, v text, n int UNIQUE); INSERT INTO t VALUES (5, 'x', 2)", fails: "another row has the value already",
			do: func(t *testing.T) [][]sdk.Change { return segs(seg(up(t, keyed(), 2, "b", 2))) },
		},
		{
			name: "a deferrable key", before: "CREATE TABLE t (id bigint PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v text, n int)", query: read, want: "1 b 1,2 c 2",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(up(t, sc, 1, "a", 1), up(t, sc, 2, "c", 2)), seg(up(t, sc, 1, "b", 1)))
			},
		},
		{
			name: "a key that counts by itself (B087)", before: "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text, n int)", query: read, want: "7 b 1",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(up(t, sc, 7, "a", 1)), seg(up(t, sc, 7, "b", 1)))
			},
		},
		{
			name: "names that differ in case (B062)", before: `CREATE TABLE "T" ("ID" bigint PRIMARY KEY, "V" text, n int, m text DEFAULT 'm')`, query: `SELECT * FROM "T"`, want: "7 a 1 m",
			do: func(t *testing.T) [][]sdk.Change { return segs(seg(up(t, keyed(), 7, "a", 1))) },
		},
		{
			name: "a foreign key on the table itself, cascades", query: "SELECT id, n FROM t ORDER BY id", want: "1 NULL,2 1,4 NULL",
			before: "CREATE TABLE t (id bigint PRIMARY KEY, v text, n int REFERENCES t ON DELETE CASCADE)",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(up(t, sc, 1, "a", nil), up(t, sc, 3, "a", nil), up(t, sc, 4, "a", nil)), seg(up(t, sc, 2, "b", 1), up(t, sc, 5, "b", 3)), seg(del(t, sc, 3, "a", nil)))
			},
		},
		{
			name: "a parent that is not there", before: "CREATE TABLE t (id bigint PRIMARY KEY, v text, n int REFERENCES t)", fails: "violates foreign key",
			do: func(t *testing.T) [][]sdk.Change { return segs(seg(up(t, keyed(), 1, "a", 8))) },
		},
		{
			name: "truncate", query: read, want: "3 c 3",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				return segs(seg(up(t, sc, 1, "a", 1)), seg(sdk.Change{Op: sdk.Truncate, Schema: sc}), seg(up(t, sc, 3, "c", 3)))
			},
		},
		{
			name: "one of the equal rows of a table without a key (B080)", cfg: Config{Options: target.Options{Keyless: target.FullRowMatch}},
			query: "SELECT a, b FROM log ORDER BY a, b", want: "1 x,2 z,NULL NULL",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyless()
				add := func(v ...any) sdk.Change { return change(t, sdk.Append, sc, nil, v) }
				return segs(seg(add(1, "x"), add(1, "x"), add(nil, nil), add(nil, nil), add(2, "y")),
					seg(change(t, sdk.MatchRemove, sc, vals(nil, nil), nil)), seg(change(t, sdk.MatchPatch, sc, vals(2, "y"), vals(2, "z"))),
					seg(change(t, sdk.MatchRemove, sc, vals(1, "x"), nil)), seg(change(t, sdk.MatchRemove, sc, vals(8, "x"), nil)))
			},
		},
		{
			name: "snapshot rows go through COPY", query: "SELECT count(*), min(v), max(n), count(v) FROM t", want: "6000 v 6000 5999",
			do: func(t *testing.T) [][]sdk.Change {
				sc := keyed()
				var all []sdk.Change
				for i := range 6000 {
					var v any = "v"
					if i == 0 {
						v = nil
					}
					c := up(t, sc, i+1, v, i+1)
					c.Kind, c.Schema = batch.Read, sc
					all = append(all, c)
				}
				return segs(all)
			},
		},
		{
			name: "triggers of the target are refused", fails: "it has the triggers again",
			before: "CREATE TABLE t (id bigint PRIMARY KEY, v text, n int); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.v = NEW.v || NEW.v; RETURN NEW; END'; CREATE TRIGGER again BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
			do:     func(t *testing.T) [][]sdk.Change { return segs(seg(up(t, keyed(), 1, "a", 8))) },
		},
		{
			name: "triggers of the target do not fire", cfg: Config{Triggers: TriggersSkip}, query: read, want: "1 a 8",
			before: "CREATE TABLE t (id bigint PRIMARY KEY, v text, n int); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.v = NEW.v || NEW.v; RETURN NEW; END'; CREATE TRIGGER again BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
			do:     func(t *testing.T) [][]sdk.Change { return segs(seg(up(t, keyed(), 1, "a", 8))) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := s.db(t)
			if c.before != "" {
				d.rows(t, c.before)
			}
			w := d.writer(t, c.cfg)
			claim(t, w, execution("x1", 1))
			// Twice, the second time over what the first has left.
			for n := uint64(1); n <= 2; n++ {
				err := writeSegments(w, nextOf(0, n), c.do(t)...)
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) {
						t.Fatalf("got %v, want an error with %q", err, c.fails)
					}
					if got := d.list(t, "SELECT batch_no FROM datalink_progress WHERE lane = 0"); got != "0" {
						t.Errorf("batch %s is stored", got)
					}
					return
				}
				must(t, err)
				if got := d.list(t, c.query); got != c.want {
					t.Fatalf("time %d: rows %s, want %s", n, got, c.want)
				}
				if w.cfg.Keyless == target.FullRowMatch {
					return
				}
			}
		})
	}
}

// All records that cannot be written are named, and nothing of the batch is.
func TestRecordErrors(t *testing.T) {
	s := start(t)
	d := s.db(t)
	d.rows(t, "CREATE TABLE t (id bigint PRIMARY KEY, v text CHECK (v <> 'bad'), n int)")
	w := d.writer(t, Config{})
	claim(t, w, execution("x1", 1))
	ctx := context.Background()
	tx, err := w.Begin(ctx, []int32{0})
	must(t, err)
	must(t, tx.Fence(ctx, []sdk.Next{nextOf(0, 1)}))
	sc := keyed()
	up := func(v ...any) sdk.Change { return change(t, sdk.Upsert, sc, nil, v) }
	bad, err := tx.Apply(ctx, &sdk.Changes{Segments: segs(seg(up(1, "a", 1)), seg(up(2, "bad", 1), up(3, "b\x00c", 1), up(4, "d", 1), up(5, "bad", 1)), seg(up(6, "bad", 1)))})
	must(t, err)
	var at []int
	for _, b := range bad {
		at = append(at, b.Index)
	}
	if len(bad) != 3 || at[0] != 1 || at[1] != 2 || at[2] != 4 || bad[0].Err.Code != sdk.CodeConflict || bad[1].Err.Code != sdk.CodeUnfit {
		t.Errorf("records %v: %+v", at, bad)
	}
	must(t, tx.Rollback(ctx))
	if got := d.list(t, "SELECT count(*) FROM t"); got != "0" {
		t.Errorf("%s rows", got)
	}
	must(t, write(w, nextOf(0, 1), up(1, "a", 1)))
}

func TestReconcile(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		lo, hi int
		seen   []int
		want   string
	}{
		{"all", 0, 0, []int{2, 4}, "2,4"},
		{"between", 2, 5, []int{4, 9}, "1,2,4,6"},
		{"from", 3, 0, nil, "1,2,3"},
		{"to", 0, 3, []int{1}, "1,4,5,6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := s.db(t)
			w := d.writer(t, Config{})
			claim(t, w, execution("x1", 1))
			sc := keyed()
			key := func(n int) []byte {
				if n == 0 {
					return nil
				}
				return change(t, sdk.Upsert, sc, nil, vals(n, "v", n)).Key
			}
			var rows []sdk.Change
			for n := 1; n <= 6; n++ {
				rows = append(rows, change(t, sdk.Upsert, sc, nil, vals(n, "v", n)))
			}
			r := sdk.Change{Op: sdk.Reconcile, Schema: sc, Range: &batch.KeyRange{Lo: key(c.lo), Hi: key(c.hi)}}
			for _, n := range c.seen {
				r.Seen = append(r.Seen, key(n))
			}
			must(t, writeSegments(w, nextOf(0, 1), rows, seg(r)))
			if got := d.list(t, "SELECT id FROM t ORDER BY id"); got != c.want {
				t.Errorf("rows %s, want %s", got, c.want)
			}
		})
	}
	t.Run("an order that is not the source's", func(t *testing.T) {
		w := s.db(t).writer(t, Config{})
		claim(t, w, execution("x1", 1))
		sc := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{{Name: "k", Type: batch.String, Collation: "utf8mb4_0900_ai_ci"}}}
		cons, err := w.Prepare(ctx, sc)
		must(t, err)
		if !cons.Unordered {
			t.Error("Prepare does not say so")
		}
		k := change(t, sdk.Upsert, sc, nil, vals("a"))
		err = write(w, nextOf(0, 1), sdk.Change{Op: sdk.Reconcile, Schema: sc, Range: &batch.KeyRange{Lo: k.Key}})
		if f := sdk.AsFault(err); f == nil || f.Code != sdk.CodeRefused {
			t.Errorf("got %v, want refused", err)
		}
		must(t, write(w, nextOf(0, 1), k))
		must(t, write(w, nextOf(0, 2), sdk.Change{Op: sdk.Reconcile, Schema: sc, Range: &batch.KeyRange{}}))
	})
}

func TestPrepare(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	for _, c := range []struct {
		name, before string
		cfg          Config
		found        []string
	}{
		{"created", "", Config{}, nil},
		{"create is off", "", Config{Options: target.Options{Create: target.Off}}, []string{`CREATE TABLE "public"."t"`, "create is off"}},
		{"a column is added", "CREATE TABLE t (id bigint PRIMARY KEY, n int)", Config{}, nil},
		{
			"all that is wrong is named", "CREATE TABLE t (id int, v varchar(3) NOT NULL, w int NOT NULL)",
			Config{Options: target.Options{OnMissingColumn: target.Stop}},
			[]string{"column n (int32) is missing", "no primary key or unique index", "column w is NOT NULL without a default", "column id is integer", `ALTER COLUMN "id" TYPE bigint`, `ADD COLUMN "n" integer`, "CREATE UNIQUE INDEX ON"},
		},
		{"a view", "CREATE VIEW t AS SELECT 1::bigint AS id, 'a' AS v, 1 AS n", Config{}, []string{"it is a view"}},
		{"an unlogged table", "CREATE UNLOGGED TABLE t (id bigint PRIMARY KEY, v text, n int)", Config{}, []string{"it is UNLOGGED", "SET LOGGED"}},
		{"a generated column", "CREATE TABLE t (id bigint PRIMARY KEY, v text, n int GENERATED ALWAYS AS (1) STORED)", Config{}, []string{"column n is generated in the target"}},
		{"another type", "CREATE TABLE t (id bigint PRIMARY KEY, v bytea, n timestamptz)", Config{}, []string{"column v is bytea: expected text", "column n is timestamp with time zone: expected integer"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := s.db(t)
			if c.before != "" {
				d.rows(t, c.before)
			}
			w := d.writer(t, c.cfg)
			claim(t, w, execution("x1", 1))
			if _, _, err := w.Rehearse(ctx, keyed()); (err == nil) != (c.found == nil) {
				t.Errorf("rehearsal: %v", err)
			}
			_, err := w.Prepare(ctx, keyed())
			if c.found == nil {
				must(t, err)
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, f := range c.found {
				if !strings.Contains(err.Error(), f) {
					t.Errorf("%v: lacks %q", err, f)
				}
			}
		})
	}
	t.Run("constraints", func(t *testing.T) {
		d := s.db(t)
		d.rows(t, "CREATE TABLE t2 (id int PRIMARY KEY); CREATE TABLE t (id bigint PRIMARY KEY, v text UNIQUE, n int REFERENCES t2); CREATE TABLE t3 (r bigint REFERENCES t)")
		w := d.writer(t, Config{})
		claim(t, w, execution("x1", 1))
		cons, err := w.Prepare(ctx, keyed())
		must(t, err)
		if len(cons.Uniques) != 1 || len(cons.ForeignKeys) != 1 || cons.ForeignKeys[0].RefTable != "t2" || cons.ForeignKeys[0].RefSchema != "" || !cons.Referenced || cons.OneLane {
			t.Errorf("%+v", cons)
		}
	})
	t.Run("after another claim", func(t *testing.T) {
		d := s.db(t)
		a, b := d.writer(t, on(ledger.Switches{})), d.writer(t, on(ledger.Switches{}))
		claim(t, a, execution("x1", 1))
		claim(t, b, execution("x2", 2))
		if _, err := a.Prepare(ctx, keyed()); !errors.Is(err, sdk.ErrFenced) {
			t.Errorf("got %v, want fenced", err)
		}
		if got := d.list(t, "SELECT to_regclass('t') IS NULL"); got != "t" {
			t.Error("a late execution made a table")
		}
	})
}
