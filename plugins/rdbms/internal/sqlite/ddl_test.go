package sqlite

import (
	"slices"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func TestAlter(t *testing.T) {
	col := func(c batch.Column) *batch.Column { return &c }
	add := func(c batch.Column) *batch.Change {
		return &batch.Change{Kind: batch.DDLAddColumn, Table: "t", Column: &c, Statement: "ALTER …"}
	}
	retyped := func(c batch.Column) *batch.Change {
		return &batch.Change{Kind: batch.DDLChangeColumn, Table: "t", Column: &c, Statement: "ALTER …"}
	}
	withKey := keyed()
	withKey.Key = []int{2}
	for _, c := range []struct {
		name  string
		do    []*batch.Change
		query string
		want  []string
		code  sdk.Code
	}{
		{
			name: "create", do: []*batch.Change{{Kind: batch.DDLCreateTable, Table: "u", Schema: &batch.Schema{ID: 1, Table: "u", Key: []int{0}, Columns: []batch.Column{{Name: "a", Type: batch.Int32}}}}},
			query: "SELECT sql FROM sqlite_schema WHERE name='u'", want: []string{`"CREATE TABLE \"u\" (\"a\" INTEGER NOT NULL, PRIMARY KEY (\"a\"))"`},
		},
		{name: "drop", do: []*batch.Change{{Kind: batch.DDLDropTable, Table: "t"}, {Kind: batch.DDLDropTable, Table: "t"}}, query: "SELECT name FROM sqlite_schema WHERE name='t'"},
		{name: "rename", do: []*batch.Change{{Kind: batch.DDLRenameTable, OldName: "t", Table: "u"}}, query: "SELECT id FROM u", want: []string{"1", "2"}},
		{name: "rename to another namespace", do: []*batch.Change{{Kind: batch.DDLRenameTable, OldName: "\x00t", Namespace: "a", Table: "u"}}, query: "SELECT id FROM \"a.u\"", want: []string{"1", "2"}},
		{name: "rename by case", do: []*batch.Change{{Kind: batch.DDLRenameTable, OldName: "t", Table: "T"}}, query: "SELECT name FROM sqlite_schema WHERE name='T'", want: []string{`"T"`}},
		{
			name: "swap", do: []*batch.Change{
				{Kind: batch.DDLCreateTable, Table: "g", Schema: &batch.Schema{ID: 1, Table: "g", Key: []int{0}, Columns: []batch.Column{{Name: "a", Type: batch.Int32}}}},
				{Kind: batch.DDLRenameTable, OldName: "t", Table: "old"},
				{Kind: batch.DDLRenameTable, OldName: "g", Table: "t"},
				{Kind: batch.DDLRenameTable, OldName: "old", Table: "g"},
			},
			query: "SELECT id FROM g UNION ALL SELECT a FROM t", want: []string{"1", "2"},
		},
		{name: "rename onto a table", do: []*batch.Change{
			{Kind: batch.DDLCreateTable, Table: "u", Schema: &batch.Schema{ID: 1, Table: "u", Key: []int{0}, Columns: []batch.Column{{Name: "a", Type: batch.Int32}}}},
			{Kind: batch.DDLRenameTable, OldName: "t", Table: "u"},
		}, code: sdk.CodeSchemaMismatch},
		{name: "add nullable", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.Int32, Flags: batch.Nullable}), add(batch.Column{Name: "X", Type: batch.Int32})}, query: "SELECT x FROM t", want: []string{"NULL", "NULL"}},
		{name: "add with default", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.Decimal, Scale: 3, Default: "'1.5'"})}, query: "SELECT x FROM t", want: []string{`"1.500"`, `"1.500"`}},
		{name: "add text default", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.String, Default: `'it''s \'x\''`})}, query: "SELECT x FROM t", want: []string{`"it's 'x'"`, `"it's 'x'"`}},
		{name: "add number default", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.Uint64, Default: "18446744073709551615"})}, query: "SELECT x FROM t", want: []string{`"18446744073709551615"`, `"18446744073709551615"`}},
		{name: "add small number default", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.Uint64, Default: "'7'"})}, query: "SELECT x FROM t", want: []string{"7", "7"}},
		{name: "add partly zero date", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.Date, Default: "'2020-00-10'"})}, query: "SELECT x FROM t", want: []string{`"2020-00-10"`, `"2020-00-10"`}},
		{
			name: "add not null", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.DateTime, Scale: 2}), add(batch.Column{Name: "y", Type: batch.Int8}), add(batch.Column{Name: "z", Type: batch.Enum, Values: []string{"b"}})},
			query: "SELECT x, y, z FROM t", want: []string{`"0000-00-00 00:00:00.00" 0 "b"`, `"0000-00-00 00:00:00.00" 0 "b"`},
		},
		{name: "add document not null", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.JSON})}, query: "SELECT x FROM t", want: []string{`"null"`, `"null"`}},
		{name: "add computed column", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.Int32, Flags: batch.Generated | batch.Nullable})}, code: sdk.CodeRefused},
		{name: "add with expression", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.DateTime, Default: "CURRENT_TIMESTAMP"})}, code: sdk.CodeRefused},
		{
			name: "drop column", do: []*batch.Change{{Kind: batch.DDLDropColumn, Table: "t", Column: col(batch.Column{Name: "v"})}, {Kind: batch.DDLDropColumn, Table: "t", Column: col(batch.Column{Name: "v"})}},
			query: "SELECT * FROM t", want: []string{"1 1", "2 NULL"},
		},
		{
			name: "rename column", do: []*batch.Change{{Kind: batch.DDLRenameColumn, Table: "t", OldName: "v", Column: col(batch.Column{Name: "w"})}, {Kind: batch.DDLRenameColumn, Table: "t", OldName: "id", Column: col(batch.Column{Name: "bID"})}},
			query: "SELECT bID, w FROM t", want: []string{`1 "1.5"`, `2 "a"`},
		},
		{name: "wider integer", do: []*batch.Change{retyped(batch.Column{Name: "n", Type: batch.Int64})}, query: "SELECT n FROM t", want: []string{"1", "NULL"}},
		{name: "integer to text", do: []*batch.Change{retyped(batch.Column{Name: "n", Type: batch.String})}, query: "SELECT n, typeof(n) FROM t", want: []string{`"1" "text"`, `NULL "null"`}},
		{name: "integer to unsigned big", do: []*batch.Change{retyped(batch.Column{Name: "n", Type: batch.Uint64})}, query: "SELECT n FROM t", want: []string{"1", "NULL"}},
		{name: "integer to decimal", do: []*batch.Change{retyped(batch.Column{Name: "n", Type: batch.Decimal, Scale: 2})}, query: "SELECT n FROM t", want: []string{`"1.00"`, "NULL"}},
		{name: "text to number", do: []*batch.Change{retyped(batch.Column{Name: "v", Type: batch.Int32})}, code: sdk.CodeRefused},
		{name: "longer scale", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.Decimal, Scale: 1, Default: "-2.5"}), retyped(batch.Column{Name: "x", Type: batch.Decimal, Scale: 3})}, query: "SELECT x FROM t", want: []string{`"-2.500"`, `"-2.500"`}},
		{name: "shorter scale", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.Decimal, Scale: 3, Default: "-2.5"}), retyped(batch.Column{Name: "x", Type: batch.Decimal, Scale: 1})}, code: sdk.CodeRefused},
		{name: "fractions of a second", do: []*batch.Change{add(batch.Column{Name: "x", Type: batch.Time, Default: "'-01:02:03'"}), retyped(batch.Column{Name: "x", Type: batch.Time, Scale: 2})}, query: "SELECT x FROM t", want: []string{`"-01:02:03.00"`, `"-01:02:03.00"`}},
		{name: "renamed and retyped", do: []*batch.Change{{Kind: batch.DDLChangeColumn, Table: "t", OldName: "n", Column: col(batch.Column{Name: "m", Type: batch.String})}}, query: "SELECT m FROM t", want: []string{`"1"`, "NULL"}},
		{name: "key column to text", do: []*batch.Change{retyped(batch.Column{Name: "id", Type: batch.String})}, code: sdk.CodeRefused},
		{name: "another key", do: []*batch.Change{{Kind: batch.DDLAddIndex, Table: "t", Schema: withKey}}, query: "SELECT sql FROM sqlite_schema WHERE type='index' AND tbl_name='t'", want: []string{`"CREATE UNIQUE INDEX \"t_datalink_key\" ON \"t\" (\"n\")"`}},
		{
			name: "signed to unsigned big", do: []*batch.Change{retyped(batch.Column{Name: "n", Type: batch.Uint64})},
			query: "SELECT type FROM pragma_table_info('t') WHERE name='n'", want: []string{`""`},
		},
		{name: "other index", do: []*batch.Change{{Kind: batch.DDLAddIndex, Table: "t", Schema: keyed()}, {Kind: batch.DDLDropIndex, Table: "t"}}, query: "SELECT count(*) FROM t", want: []string{"2"}},
		{name: "table that is not there", do: []*batch.Change{{Kind: batch.DDLAddColumn, Table: "none", Column: col(batch.Column{Name: "x", Type: batch.Int8})}, {Kind: batch.DDLRenameTable, OldName: "none", Table: "other"}}, query: "SELECT count(*) FROM t", want: []string{"2"}},
		{name: "index of the source", do: []*batch.Change{{Kind: batch.DDLOther, Table: "t", Schema: keyed(), Statement: "CREATE INDEX i ON t (v)"}}, query: "SELECT count(*) FROM t", want: []string{"2"}},
		{name: "statement that is not typed", do: []*batch.Change{{Kind: batch.DDLOther, Table: "t", Statement: "ALTER TABLE t FROBNICATE"}}, code: sdk.CodeRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := path(t)
			w := writer(t, Config{Path: file})
			claim(t, w, execution("x1", 1))
			must(t, write(w, next(0, 1), change(t, sdk.Upsert, keyed(), nil, vals(1, "1.5", 1)), change(t, sdk.Upsert, keyed(), nil, vals(2, "a", nil))))
			var ch []sdk.Change
			for _, d := range c.do {
				ch = append(ch, sdk.Change{Op: sdk.Alter, Kind: batch.DDL, DDL: d})
			}
			err := write(w, next(0, 2), ch...)
			if c.code != "" {
				if f := sdk.AsFault(err); f == nil || f.Code != c.code {
					t.Errorf("got %v, want %s", err, c.code)
				}
				if got := rows(t, file, "SELECT * FROM t"); !slices.Equal(got, []string{`1 "1.5" 1`, `2 "a" NULL`}) {
					t.Errorf("after the refusal: %q", got)
				}
				return
			}
			must(t, err)
			if got := rows(t, file, c.query); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A schema change, the rows before it and the rows after it in one transaction.
func TestAlterBetweenRows(t *testing.T) {
	file := path(t)
	w := writer(t, Config{Path: file})
	claim(t, w, execution("x1", 1))
	wide := keyed()
	wide.ID = 5
	wide.Columns = append(wide.Columns, batch.Column{Name: "extra", Type: batch.Int32, Default: "7"})
	must(t, write(w, next(0, 1), change(t, sdk.Upsert, keyed(), nil, vals(1, "a", 1)),
		sdk.Change{Op: sdk.Alter, DDL: &batch.Change{Kind: batch.DDLAddColumn, Table: "t", Column: &wide.Columns[3], Schema: wide}},
		change(t, sdk.Upsert, wide, nil, vals(2, "b", 2, 3))))
	if got := rows(t, file, "SELECT id, extra FROM t"); !slices.Equal(got, []string{"1 7", "2 3"}) {
		t.Errorf("got %q", got)
	}
}

// SQLite's ON CONFLICT takes no index with the row number among its columns.
func TestKeyGrows(t *testing.T) {
	file := path(t)
	w := writer(t, Config{Path: file})
	claim(t, w, execution("x1", 1))
	wide := keyed()
	wide.ID, wide.Key = 5, []int{2, 0}
	must(t, write(w, next(0, 1), change(t, sdk.Upsert, keyed(), nil, vals(1, "a", 1)), change(t, sdk.Upsert, keyed(), nil, vals(2, "b", 1)),
		sdk.Change{Op: sdk.Alter, DDL: &batch.Change{Kind: batch.DDLDropIndex, Table: "t", Index: &batch.Index{Name: "PRIMARY"}, Schema: wide}},
		sdk.Change{Op: sdk.Alter, DDL: &batch.Change{Kind: batch.DDLAddIndex, Table: "t", Index: &batch.Index{Columns: wide.Key}, Schema: wide}},
		change(t, sdk.Upsert, wide, vals(2, "b", 1), vals(2, "c", 1)), change(t, sdk.Upsert, wide, nil, vals(3, "d", 7)), change(t, sdk.Remove, wide, vals(1, "a", 1), nil)))
	if got := rows(t, file, "SELECT * FROM t"); !slices.Equal(got, []string{`2 "c" 1`, `3 "d" 7`}) {
		t.Errorf("got %q", got)
	}
}

func TestAlterPolicies(t *testing.T) {
	drop := sdk.Change{Op: sdk.Alter, DDL: &batch.Change{Kind: batch.DDLDropTable, Table: "t", Statement: "DROP TABLE t"}}
	for policy, want := range map[string]string{Ignore: "", Stop: "ddl is stop: DROP TABLE t"} {
		file := path(t)
		w := writer(t, Config{Path: file, DDL: policy})
		claim(t, w, execution("x1", 1))
		must(t, write(w, next(0, 1), change(t, sdk.Upsert, keyed(), nil, vals(1, "a", 1))))
		err := write(w, next(0, 2), drop)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", policy, err, want)
		}
		if got := rows(t, file, "SELECT count(*) FROM t"); got[0] != "1" {
			t.Errorf("%s: the table is gone", policy)
		}
	}
}
