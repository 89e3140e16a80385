package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func TestDDL(t *testing.T) {
	s := start(t)
	column := func(name string, typ batch.Type, change ...func(*batch.Column)) *batch.Column {
		c := &batch.Column{Name: name, Type: typ, Flags: batch.Nullable}
		for _, f := range change {
			f(c)
		}
		return c
	}
	with := func(def string, flags batch.ColumnFlags) func(*batch.Column) {
		return func(c *batch.Column) { c.Default, c.Flags = def, flags }
	}
	const shown = "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped"
	const layout = "id bigint, v text, n integer"
	for _, c := range []struct {
		name   string
		before string
		change batch.Change
		policy string
		query  string
		want   string
		fails  string
	}{
		{name: "add", change: batch.Change{Kind: batch.DDLAddColumn, Column: column("m", batch.Decimal, func(c *batch.Column) { c.Precision, c.Scale = 5, 2 })}, query: shown, want: layout + ", m numeric(5,2)"},
		{name: "add what is there (B069)", before: "ALTER TABLE t ADD m int", change: batch.Change{Kind: batch.DDLAddColumn, Column: column("m", batch.Int32)}, query: shown, want: layout + ", m integer"},
		{name: "add with a default", change: batch.Change{Kind: batch.DDLAddColumn, Column: column("m", batch.String, with("'it''s'", 0))}, query: "SELECT m FROM t ORDER BY id", want: "it's,it's"},
		{name: "add without NULL", change: batch.Change{Kind: batch.DDLAddColumn, Column: column("m", batch.Int64, with("", 0))}, query: "SELECT m FROM t ORDER BY id", want: "0,0"},
		{name: "add a moment", change: batch.Change{Kind: batch.DDLAddColumn, Column: column("m", batch.DateTime, with("CURRENT_TIMESTAMP", 0))}, fails: "only the source knows"},
		{name: "add a zero date", change: batch.Change{Kind: batch.DDLAddColumn, Column: column("m", batch.Date, with("'0000-00-00'", 0))}, fails: "PostgreSQL has no value"},
		{name: "drop", change: batch.Change{Kind: batch.DDLDropColumn, Column: &batch.Column{Name: "n"}}, query: shown, want: "id bigint, v text"},
		{name: "rename a column (B057)", change: batch.Change{Kind: batch.DDLRenameColumn, OldName: "n", Column: column("n2", batch.Int32)}, query: shown, want: "id bigint, v text, n2 integer"},
		{name: "wider", change: batch.Change{Kind: batch.DDLChangeColumn, Column: column("n", batch.Int64)}, query: shown, want: "id bigint, v text, n bigint"},
		{name: "a number becomes text", change: batch.Change{Kind: batch.DDLChangeColumn, OldName: "n", Column: column("k", batch.String)}, query: shown, want: "id bigint, v text, k text"},
		{name: "narrower, and all fit", change: batch.Change{Kind: batch.DDLChangeColumn, Column: column("n", batch.Int16)}, query: "SELECT n FROM t ORDER BY id", want: "1,200"},
		{name: "a longer text", change: batch.Change{Kind: batch.DDLChangeColumn, Column: column("v", batch.String, func(c *batch.Column) { c.Length = 200 })}, query: shown, want: layout},
		{name: "text becomes bytes", change: batch.Change{Kind: batch.DDLChangeColumn, Column: column("v", batch.Bytes)}, fails: "cannot be said"},
		{name: "rename the table (B054, B060)", change: batch.Change{Kind: batch.DDLRenameTable, Namespace: "other", Table: "t9", OldName: "\x00t"}, query: "SELECT count(*) FROM other.t9", want: "2"},
		{name: "drop the table", change: batch.Change{Kind: batch.DDLDropTable}, query: "SELECT to_regclass('t') IS NULL", want: "t"},
		{name: "what is not translated", change: batch.Change{Kind: batch.DDLOther}, fails: "translated"},
		{name: "an index", change: batch.Change{Kind: batch.DDLOther, Schema: keyed()}, query: shown, want: layout},
		{name: "ignored", policy: target.Ignore, change: batch.Change{Kind: batch.DDLDropTable}, query: "SELECT count(*) FROM t", want: "2"},
		{name: "stop", policy: target.Stop, change: batch.Change{Kind: batch.DDLDropTable}, fails: "ddl is stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := s.db(t)
			w := d.writer(t, Config{Options: target.Options{DDL: c.policy}})
			claim(t, w, execution("x1", 1))
			sc := keyed()
			must(t, write(w, nextOf(0, 1), change(t, sdk.Upsert, sc, nil, vals(1, "a", 1)), change(t, sdk.Upsert, sc, nil, vals(2, "b", 200))))
			if c.before != "" {
				d.rows(t, c.before+"; SELECT 1")
			}
			ch := c.change
			if ch.Table == "" {
				ch.Table = "t"
			}
			ddl := sdk.Change{Op: sdk.Alter, Kind: batch.DDL, DDL: &ch}
			// A transaction that is rolled back takes the change with it.
			ctx := context.Background()
			tx, err := w.Begin(ctx, []int32{0})
			must(t, err)
			must(t, tx.Fence(ctx, []sdk.Next{nextOf(0, 2)}))
			_, _ = tx.Apply(ctx, &sdk.Changes{Segments: segs(seg(ddl))})
			must(t, tx.Rollback(ctx))
			if got := d.list(t, "SELECT count(*) FROM t"); got != "2" {
				t.Errorf("after a rollback: %s rows", got)
			}
			err = write(w, nextOf(0, 2), ddl)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %v, want an error with %q", err, c.fails)
				}
				must(t, write(w, nextOf(0, 2), change(t, sdk.Upsert, sc, nil, vals(3, "c", 3))))
				return
			}
			must(t, err)
			if got := d.list(t, c.query); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			must(t, write(w, nextOf(0, 3), ddl)) // what is there counts as done
		})
	}
}

// Rows of the new layout follow the change in the same transaction.
func TestDDLAmongRows(t *testing.T) {
	s := start(t)
	d := s.db(t)
	w := d.writer(t, Config{})
	claim(t, w, execution("x1", 1))
	old, now := keyed(), keyed()
	now.ID = 9
	now.Columns = append(now.Columns, batch.Column{Name: "m", Type: batch.Int32, Flags: batch.Nullable})
	add := sdk.Change{Op: sdk.Alter, Kind: batch.DDL, DDL: &batch.Change{Kind: batch.DDLAddColumn, Table: "t", Column: &now.Columns[3], Schema: now}}
	must(t, writeSegments(w, nextOf(0, 1), seg(change(t, sdk.Upsert, old, nil, vals(1, "a", 1))), seg(add), seg(change(t, sdk.Upsert, now, nil, vals(2, "b", 2, 7)))))
	if got := d.list(t, "SELECT id, v, n, m FROM t ORDER BY id"); got != "1 a 1 NULL,2 b 2 7" {
		t.Errorf("rows %s", got)
	}
}
