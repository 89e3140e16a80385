package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func TestPrepareCreates(t *testing.T) {
	nasty := &batch.Schema{ID: 1, Namespace: "my-schema", Table: `order "x".y; DROP TABLE z --`, Key: []int{1, 0}, Columns: []batch.Column{
		{Name: `select`, Type: batch.Int64}, {Name: `a "b".c-d'e`, Type: batch.String}, {Name: "rowid", Type: batch.Uint64}, {Name: "客户", Type: batch.Float64}, {Name: "b", Type: batch.Bytes},
	}}
	for _, c := range []struct {
		s    *batch.Schema
		want string
	}{
		{keyed(), `CREATE TABLE "t" ("id" INTEGER NOT NULL, "v" TEXT, "n" INTEGER, PRIMARY KEY ("id"))`},
		{keyless(), `CREATE TABLE "log" ("a" INTEGER, "b" TEXT)`},
		{nasty, `CREATE TABLE "my-schema.order ""x"".y; DROP TABLE z --" ("select" INTEGER NOT NULL, "a ""b"".c-d'e" TEXT NOT NULL, "rowid", "客户", "b" BLOB, PRIMARY KEY ("a ""b"".c-d'e", "select"))`},
	} {
		file := path(t)
		w := writer(t, Config{Path: file, Keyless: Append})
		claim(t, w, execution("x1", 1))
		for range 2 {
			_, err := w.Prepare(context.Background(), c.s)
			must(t, err)
		}
		got := rows(t, file, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'datalink%'")
		if want := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.want); len(got) != 1 || got[0] != `"`+want+`"` {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	file := path(t)
	w := writer(t, Config{Path: file})
	claim(t, w, execution("x1", 1))
	v := vals(1, "k", uint64(1<<63), 0.5, []byte("b"))
	must(t, write(w, next(0, 1), change(t, sdk.Upsert, nasty, nil, v), change(t, sdk.Upsert, nasty, nil, v), change(t, sdk.Patch, nasty, v, vals(1, "k", 7, absent, absent))))
	if got := rows(t, file, "SELECT * FROM "+quote(nasty.Name())); !slices.Equal(got, []string{`1 "k" 7 real 0.5 x62`}) {
		t.Errorf("got %q", got)
	}
}

// Everything that does not fit is named at once, each with what mends it, and
// what mends it does.
func TestPrepareRefuses(t *testing.T) {
	wide := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{
		{Name: "id", Type: batch.Int64},
		{Name: "d", Type: batch.Decimal, Flags: batch.Nullable},
		{Name: "f", Type: batch.Float64, Flags: batch.Nullable},
		{Name: "dt", Type: batch.DateTime, Flags: batch.Nullable},
		{Name: "x", Type: batch.Bytes, Flags: batch.Nullable},
	}}
	for _, c := range []struct {
		name, create string
		cfg          Config
		s            *batch.Schema
		want         []string // in the error; none = it fits
		mends        bool
	}{
		{name: "fits", create: "CREATE TABLE T (ID INT PRIMARY KEY, D VARCHAR(9), F, DT DATETIME, X TEXT)", s: wide},
		{name: "strict", create: "CREATE TABLE t (id INTEGER PRIMARY KEY, d TEXT, f REAL, dt ANY, x BLOB) STRICT", s: wide},
		{name: "unique index as key", create: "CREATE TABLE t (id, d TEXT, f, dt TEXT, x); CREATE UNIQUE INDEX i ON t (id)", s: wide},
		{
			name: "all at once", create: "CREATE TABLE t (id INTEGER, d DECIMAL(9,2), f TEXT, dt DATETIME)", cfg: Config{OnMissingColumn: Stop}, s: wide, mends: true,
			want: []string{`column d is declared "DECIMAL(9,2)"`, "NUMERIC affinity", `column f is declared "TEXT"`, "column x (bytes) is missing", `no primary key or unique index on exactly "id"`, `ALTER TABLE "t" ADD COLUMN "x" BLOB`, "CREATE UNIQUE INDEX"},
		},
		{name: "other key", create: "CREATE TABLE t (id INTEGER, d TEXT, f, dt TEXT, x, PRIMARY KEY (id, d))", s: wide, mends: true, want: []string{`unique index on exactly "id"`}},
		{
			name: "key of another collation", create: "CREATE TABLE t (k TEXT COLLATE NOCASE PRIMARY KEY)", s: &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{{Name: "k", Type: batch.String}}},
			want: []string{"with the collation BINARY"},
		},
		{name: "partial unique index", create: "CREATE TABLE t (id, d TEXT, f, dt TEXT, x); CREATE UNIQUE INDEX i ON t (id) WHERE id > 0", s: wide, want: []string{"unique index on exactly"}},
		{name: "column that is needed", create: "CREATE TABLE t (id INTEGER PRIMARY KEY, d TEXT, f, dt TEXT, x, more INT NOT NULL)", s: wide, mends: true, want: []string{"column more is NOT NULL without a default"}},
		{name: "generated column", create: "CREATE TABLE t (id INTEGER PRIMARY KEY, d TEXT AS (id||'x'), f, dt TEXT, x)", s: wide, mends: true, want: []string{"column d is generated"}},
		{name: "no table", cfg: Config{Create: Off}, s: wide, mends: true, want: []string{"is not in the target", "CREATE TABLE"}},
		{name: "missing column is added", create: "CREATE TABLE t (id INTEGER PRIMARY KEY)", s: wide},
		{name: "missing column is left out", create: "CREATE TABLE t (id INTEGER PRIMARY KEY)", cfg: Config{OnMissingColumn: Ignore}, s: wide},
		{name: "missing key column", create: "CREATE TABLE t (d TEXT)", cfg: Config{OnMissingColumn: Ignore}, s: wide, want: []string{"column id (int64) is missing"}},
		{name: "columns alike", s: &batch.Schema{ID: 1, Table: "t", Key: []int{0}, Columns: []batch.Column{{Name: "A", Type: batch.Int32}, {Name: "a", Type: batch.Int32}}}, want: []string{"differ only in the case"}},
		{name: "reserved name", s: &batch.Schema{ID: 1, Table: "Datalink_progress", Key: []int{0}, Columns: []batch.Column{{Name: "a", Type: batch.Int32}}}, want: []string{"reserved"}},
		{name: "NUL in a name", s: &batch.Schema{ID: 1, Table: "a\x00b", Key: []int{0}, Columns: []batch.Column{{Name: "a", Type: batch.Int32}}}, want: []string{"NUL"}},
		{name: "without row numbers", create: "CREATE TABLE log (a INT, b TEXT, PRIMARY KEY (a)) WITHOUT ROWID", cfg: Config{Keyless: FullRowMatch}, s: keyless(), want: []string{"row number"}},
		{name: "view", create: "CREATE VIEW t AS SELECT 1 AS id", s: wide, want: []string{"is a view"}},
		{name: "keyless", s: keyless(), want: []string{"no primary key", "full-row-match"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := path(t)
			if c.create != "" {
				script(t, file, c.create)
			}
			c.cfg.Path = file
			w := writer(t, c.cfg)
			claim(t, w, execution("x1", 1))
			_, err := w.Prepare(context.Background(), c.s)
			if len(c.want) == 0 {
				must(t, err)
				row := make([]any, len(c.s.Columns))
				row[0] = 1
				must(t, write(w, next(0, 1), change(t, sdk.Upsert, c.s, nil, row), change(t, sdk.Upsert, c.s, nil, row)))
				return
			}
			f := sdk.AsFault(err)
			if f == nil || f.Suggestion == "" || f.Code != sdk.CodeSchemaMismatch && f.Code != sdk.CodeRefused {
				t.Fatalf("got %v, want a mismatch and what to do", err)
			}
			for _, want := range c.want {
				if !strings.Contains(f.Error(), want) {
					t.Errorf("got %v, want it to contain %q", f, want)
				}
			}
			if c.mends {
				script(t, file, f.Suggestion)
				if _, err := w.Prepare(context.Background(), c.s); err != nil {
					t.Errorf("after %s: %v", f.Suggestion, err)
				}
			}
		})
	}
	w := writer(t, Config{Path: path(t)})
	claim(t, w, execution("x1", 1))
	up := keyed()
	up.ID, up.Table = 7, "T"
	if _, err := w.Prepare(context.Background(), keyed()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Prepare(context.Background(), up); err == nil || !strings.Contains(err.Error(), "differ only in the case") {
		t.Errorf("tables t and T: got %v", err)
	}
}

func TestConstraints(t *testing.T) {
	for create, want := range map[string]sdk.Constraints{
		"": {},
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE, n INT)":                                                       {Uniques: []batch.Index{{Name: "sqlite_autoindex_t_1", Columns: []int{1}}}},
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n INT); CREATE UNIQUE INDEX u ON t (n, v)":                           {Uniques: []batch.Index{{Name: "u", Columns: []int{2, 1}}}},
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n INT); CREATE UNIQUE INDEX u ON t (v COLLATE NOCASE)":               {Uniques: []batch.Index{{Name: "u", Columns: []int{1}}}, Collated: []int{1}},
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n INT); CREATE UNIQUE INDEX u ON t (lower(v))":                       {OneLane: true},
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n INT, o DEFAULT 1); CREATE UNIQUE INDEX u ON t (v, o)":              {OneLane: true},
		"CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, n INT); CREATE INDEX u ON t (v); CREATE UNIQUE INDEX same ON t (id)": {},
	} {
		file := path(t)
		if create != "" {
			script(t, file, create)
		}
		w := writer(t, Config{Path: file})
		claim(t, w, execution("x1", 1))
		got, err := w.Prepare(context.Background(), keyed())
		must(t, err)
		if got.OneLane != want.OneLane || !slices.Equal(got.Collated, want.Collated) || len(got.Uniques) != len(want.Uniques) || len(want.Uniques) == 1 && !slices.Equal(got.Uniques[0].Columns, want.Uniques[0].Columns) {
			t.Errorf("%s: got %+v, want %+v", create, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "text"), []byte("this is no database, only text that is long enough to be read as one"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "locked"), 0o500))
	script(t, filepath.Join(dir, "old.db"), "CREATE TABLE t (a)")
	w := writer(t, Config{Path: filepath.Join(dir, "mine.db")})
	claim(t, w, execution("x1", 3))
	for file, want := range map[string]string{
		"new.db":        "info: the file is not there and will be created",
		"none/new.db":   "error: the directory of the target file is not there",
		"text":          "error: cannot",
		"locked":        "error: is not a file",
		"locked/new.db": "error: cannot write the directory",
		"old.db":        "info: journal mode is delete",
		"mine.db":       "info: holds progress of task orders, writer w: execution x1, epoch 3",
	} {
		if strings.HasPrefix(file, "locked/") && os.Getuid() == 0 {
			continue // root may write anywhere
		}
		fs, err := writer(t, Config{Path: filepath.Join(dir, file)}).Check(context.Background())
		must(t, err)
		got := ""
		for _, f := range fs {
			got += f.Severity.String() + ": " + f.Message + "\n"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new.db")); err == nil {
		t.Error("check made a file")
	}
}

// A writer that is killed before the file is in WAL mode leaves a journal: the
// file can then be read only by somebody who may write. That is no fault of it.
func TestCheckOfAKilledWritersFile(t *testing.T) {
	dir := t.TempDir()
	live, dead := filepath.Join(dir, "live.db"), filepath.Join(dir, "dead.db")
	// Without syncing the journal is complete as soon as a page changes, whatever is cached.
	db, err := sql.Open("sqlite", "file:"+live+"?_pragma=journal_mode(delete)&_pragma=synchronous(off)")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{
		"CREATE TABLE t (a)", "INSERT INTO t WITH RECURSIVE n (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 1000) SELECT randomblob(5000) FROM n",
		"BEGIN IMMEDIATE", "UPDATE t SET a = randomblob(5000)",
	} {
		_, err := db.Exec(q)
		must(t, err)
	}
	for _, end := range []string{"", "-journal"} { // as they are when the process dies here
		data, err := os.ReadFile(live + end)
		must(t, err)
		must(t, os.WriteFile(dead+end, data, 0o600))
		if end != "" && (len(data) < 8 || data[0] != 0xd9) {
			t.Fatalf("the journal begins with % x: the transaction was too small to reach the disk", data[:min(8, len(data))])
		}
	}
	fs, err := writer(t, Config{Path: dead}).Check(context.Background())
	must(t, err)
	if len(fs) != 1 || fs[0].Severity != sdk.Info || !strings.Contains(fs[0].Message, "was killed") {
		t.Fatalf("got %+v, want one line that says so and is no error", fs)
	}
	claim(t, writer(t, Config{Path: dead}), execution("x1", 1))
}
