package crashtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recorded returns the tables that a server held when it had written its log, as
// they were recorded beside it. Schemas are those to be read, more than one, so
// that tables have the same names in the target.
func recorded(t *testing.T, name string, schemas ...string) expected {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(built.root, "examples/quickstart/binlogs", name+".expect", "*.tsv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables recorded for %s: %v", name, err)
	}
	out := expected{rows: map[string][]string{}, columns: map[string][]string{}}
	for _, f := range files {
		table := strings.TrimSuffix(filepath.Base(f), ".tsv")
		if schema, _, _ := strings.Cut(table, "."); !slices.Contains(schemas, schema) {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		rows := []string{}
		for _, l := range lines[1:] { // after the names of the columns
			fields := strings.Split(l, "\t")
			for i, v := range fields {
				if v != `\N` {
					fields[i] = unescape.Replace(v)
				}
			}
			rows = append(rows, strings.Join(fields, "|"))
		}
		slices.Sort(rows)
		out.rows[table], out.columns[table] = rows, strings.Split(lines[0], "\t")
	}
	return out
}

var unescape = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r", `\0`, "\x00")
