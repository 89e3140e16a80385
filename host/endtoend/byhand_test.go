package endtoend

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// TestByHand stops at statements whose effect on rows only the source knows, does
// what the message says, and ends equal to the source.
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		name, recording, table string
		stops, hand, writer    string
	}{
		{
			"computed column", "mysql97", "ddl.t", "new column g is computed by the source",
			"ALTER TABLE t ADD COLUMN g; UPDATE t SET g = CAST(round(mid * 2) AS INTEGER); ALTER TABLE t ADD COLUMN hid INTEGER; ALTER TABLE t DROP COLUMN first",
			"ddl: ignore",
		},
		{
			"emptied partition", "mysql97", "cols.parts", "ALTER TABLE parts TRUNCATE PARTITION p2",
			"DELETE FROM parts WHERE region >= 20", "ddl: ignore",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "target.db")
			j := job{files: recording(c.recording), reader: `tables: ["` + c.table + `"]`, target: target}
			k := newTask(t, j)
			if _, err := k.run(); err == nil || !strings.Contains(err.Error(), c.stops) {
				t.Fatalf("got %v, want a stop that says %q", err, c.stops)
			}
			db, err := sql.Open("sqlite", "file:"+target)
			if err != nil {
				t.Fatal(err)
			}
			_, err = db.Exec(c.hand)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			again := j
			again.writer, again.reader = c.writer, j.reader+", onStatement: ignore"
			a := newTask(t, again)
			a.data = k.data
			a.must()
			_, short, _ := strings.Cut(c.table, ".")
			compare(t, target, short, filepath.Join(built.root, "examples/quickstart/binlogs", c.recording+".expect", c.table+".tsv"))
		})
	}
}
