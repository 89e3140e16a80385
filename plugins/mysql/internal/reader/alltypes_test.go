package reader

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// TestAllTypes has real servers write every type and compares each value of the
// log with what the server's own client prints of the row: inserted, and once
// more as the image before its deletion.
func TestAllTypes(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    string
		options []string
	}{
		{"mysql full", "mysql", []string{"--default-time-zone=-08:45"}},
		{"mysql minimal", "mysql", []string{"--binlog-row-metadata=MINIMAL", "--default-time-zone=+05:30"}},
		{"mariadb full", "mariadb", []string{"--default-time-zone=+13:00"}},
		{"mariadb 11", "mariadb11", []string{"--default-time-zone=+13:00"}},
		{"mariadb without metadata", "mariadb", []string{"--binlog-row-metadata=NO_LOG", "--default-time-zone=-08:45"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			which := alltypes.MySQL
			if c.kind != "mysql" {
				which = alltypes.MariaDB
			}
			skipOptional(t, c.kind)
			s := stack.Start(t, c.kind, append(c.options, "--log-bin=log", "--explicit-defaults-for-timestamp=ON")...)
			s.SQL(alltypes.Create(which) + alltypes.Insert(which, 1))
			want, err := alltypes.Parse(s.SQL(alltypes.Query(which), "-N", "--default-character-set=utf8mb4"))
			if err != nil {
				t.Fatal(err)
			}
			deletes := "USE " + alltypes.Database + ";\n"
			for _, k := range alltypes.Cases(which) {
				deletes += "DELETE FROM `" + k.Name + "`;\n"
			}
			s.SQL(deletes + "FLUSH BINARY LOGS;")
			for _, kind := range []batch.Kind{batch.Insert, batch.Delete} {
				got := map[alltypes.Cell]alltypes.Printed{}
				err = collect(t, Config{Files: sdk.Strings{filepath.Join(s.Facts["datadir"], "log.0*")}, Tables: sdk.Strings{alltypes.Database + ".*"}}, func(_ *batch.Tx, e *batch.Event) {
					if e.Kind == kind {
						cells(t, e, got)
					}
				})
				if err != nil {
					t.Errorf("the reader ended with %v", err)
				}
				compareCells(t, which, kind.String(), got, want)
			}
		})
	}
}

// skipOptional skips a server that no run of all tests installs, unless it is asked for.
func skipOptional(t *testing.T, kind string) {
	t.Helper()
	if kind == "mariadb11" && os.Getenv("DATALINK_MARIADB11") == "" {
		t.Skip("MariaDB 11.8 is optional: DATALINK_MARIADB11=1 runs this, examples/stack/mariadb11.sh install puts the server in place")
	}
}

// cells adds the values of a row.
func cells(t *testing.T, e *batch.Event, into map[alltypes.Cell]alltypes.Printed) {
	t.Helper()
	im := e.After
	if e.Kind == batch.Delete {
		im = e.Before
	}
	vals, err := im.Values(nil)
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for i := range vals {
		col := &e.Schema.Columns[i]
		p, err := alltypes.Value(col, &vals[i])
		if err != nil {
			t.Errorf("%s: %v", e.Schema.Name(), err)
			continue
		}
		if i == 0 {
			id = p.Value
			continue
		}
		into[alltypes.Cell{Table: e.Schema.Table, Column: col.Name, ID: id}] = p
	}
}

// compareCells compares all values of a server.
func compareCells(t *testing.T, s alltypes.Server, what string, got, want map[alltypes.Cell]alltypes.Printed) {
	t.Helper()
	for _, c := range alltypes.Cases(s) {
		for _, col := range c.Columns() {
			for cell, w := range want {
				if cell.Table != c.Name || cell.Column != col.Name {
					continue
				}
				g, ok := got[cell]
				if !ok {
					t.Errorf("%s %s.%s row %s (%s): the value is missing", what, c.Name, col.Name, cell.ID, col.Type)
				} else if d := alltypes.Same(&c, col, g, w); d != "" {
					t.Errorf("%s %s.%s row %s (%s): %s", what, c.Name, col.Name, cell.ID, col.Type, d)
				}
			}
		}
	}
	if len(got) != len(want) || len(want) < 500 {
		t.Errorf("%s: %d values, the server has %d", what, len(got), len(want))
	}
}
