package endtoend

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTargets begins with targets that hold something already, or that are called
// otherwise than the source.
func TestTargets(t *testing.T) {
	for _, c := range []struct {
		id, name  string
		recording string
		tables    string
		before    string // run on the target first
		job       job
		query     string
		want      [][]string
		err       string
	}{
		{
			id: "B059", name: "another database: only the qualifier changes", recording: "mysql97", tables: "app.*",
			job:   job{more: "    mappings: [{from: \"app.*\", to: \"app_mirror.{table}\"}]\n"},
			query: `SELECT (SELECT group_concat(name) FROM pragma_table_info('app_mirror.users')), app, path FROM "app_mirror.users"`, want: [][]string{{"app,path", "app", "app.cfg"}},
		},
		{
			id: "B062", name: "column names in another case", recording: "mysql97", tables: "keyed.chain",
			before: `CREATE TABLE chain (ID INTEGER PRIMARY KEY, V TEXT)`,
			query:  `SELECT ID, V FROM chain ORDER BY 1`, want: [][]string{{"12", "one"}, {"13", "two"}, {"14", "three"}},
		},
		{
			id: "B069", name: "column that the target has already", recording: "mysql97", tables: "ddl.tags",
			before: `CREATE TABLE tags (id INTEGER PRIMARY KEY, item_id INTEGER, taskable_type TEXT)`,
			query:  `SELECT id, taskable_id, taskable_type FROM tags ORDER BY 1`, want: [][]string{{"1", "1", null}, {"2", "2", "Task"}},
		},
		{
			id: "B079", name: "update of a row that the target lacks, whole image", recording: "mysql97", tables: "keyed.tb",
			before: `CREATE TABLE tb (a INTEGER PRIMARY KEY, b INTEGER); CREATE TRIGGER lose AFTER INSERT ON tb WHEN NEW.b = 2 AND NEW.a = 1 BEGIN DELETE FROM tb WHERE a = 1; END`,
			query:  `SELECT a, b FROM tb ORDER BY 1`, want: [][]string{{"1", "4"}, {"3", "2"}, {"4", "1"}},
		},
		{
			id: "B079", name: "update of a row that the target lacks, minimal image", recording: "mysql97-imageminimal", tables: "images.tnull",
			before: `CREATE TABLE tnull (id INTEGER PRIMARY KEY, c1null, c2null, c3); CREATE TRIGGER lose AFTER INSERT ON tnull WHEN NEW.id = 1 BEGIN DELETE FROM tnull WHERE id = 1; END`,
			err:    "no row has the key id=1",
		},
	} {
		t.Run(c.id+" "+c.name, func(t *testing.T) {
			c.job.files, c.job.reader, c.job.target = recording(c.recording), `tables: ["`+c.tables+`"]`, filepath.Join(t.TempDir(), "target.db")
			fill(t, c.job.target, c.before)
			k := newTask(t, c.job)
			if _, err := k.run(); c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("it ended with %v, want %q", err, c.err)
			}
			if c.query == "" {
				return
			}
			if d := cmp.Diff(c.want, query(t, c.job.target, c.query), cmp.Comparer(same)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestReplay writes a log twice into one target, by two tasks that know nothing
// of each other: rows with a key end as they are in the source.
func TestReplay(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target.db")
	tables := []string{"keyed.chain", "keyed.reused", "keyed.tb", "keyed.composite", "keyed.unique_only", "keyed.fast", "keyed.ci"}
	j := job{files: recording("mysql97"), reader: `tables: ["` + strings.Join(tables, `", "`) + `", "numbers.bigkeys"]`, target: target}
	for _, name := range []string{"first", "second"} {
		j.name = name
		newTask(t, j).must()
		for _, table := range append(tables, "numbers.bigkeys") {
			compare(t, target, table, filepath.Join(built.root, "examples/quickstart/binlogs/mysql97.expect", table+".tsv"))
		}
	}
}

func fill(t *testing.T, path, text string) {
	t.Helper()
	if text == "" {
		return
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}
