package endtoend

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
)

// seen is a value as a target's client prints it.
type seen struct {
	null bool
	text string
}

func (s seen) String() string {
	if s.null {
		return "NULL"
	}
	if len(s.text) > 120 {
		return fmt.Sprintf("%.120q… of %d bytes", s.text, len(s.text))
	}
	return strconv.Quote(s.text)
}

// typeCell is a column of the tables of all types.
type typeCell struct {
	table, column string
	kind          kind
	unmapped      bool
	typ           string
}

func typeCells(s alltypes.Server) []typeCell {
	var out []typeCell
	for _, c := range alltypes.Cases(s) {
		for _, col := range c.Columns() {
			out = append(out, typeCell{c.Name, col.Name, kindOf(col.Type), c.Unmapped, col.Type})
		}
	}
	return out
}

// inPostgres asks PostgreSQL for all values of the tables in a schema.
func inPostgres(t *testing.T, s *store, schema string, cells []typeCell) map[alltypes.Cell]seen {
	t.Helper()
	var b strings.Builder
	b.WriteString("SET timezone = 'UTC'; SET intervalstyle = 'postgres'; SET datestyle = 'ISO'; SET extra_float_digits = 1;\n")
	for _, c := range cells {
		e := `"` + c.column + `"`
		switch c.kind {
		case kindText, kindEnum, kindDocument:
			e = "encode(convert_to(" + e + "::text, 'UTF8'), 'hex')"
		case kindBytes:
			e = "encode(" + e + ", 'hex')"
		case kindFloat:
			e = "encode(" + e + "::float8::text::bytea, 'hex')"
		case kindInstant:
			e = "encode((" + e + " AT TIME ZONE 'UTC')::text::bytea, 'hex')"
		case kindAddress:
			e = "encode(host(" + e + ")::bytea, 'hex')"
		default:
			e = "encode(" + e + "::text::bytea, 'hex')"
		}
		fmt.Fprintf(&b, "SELECT '%s', '%s', id, coalesce(%s, 'NULL') FROM \"%s\".\"%s\";\n", c.table, c.column, e, schema, c.table)
	}
	cellsBy := map[alltypes.Cell]typeCell{}
	for _, c := range cells {
		cellsBy[alltypes.Cell{Table: c.table, Column: c.column}] = c
	}
	out := map[alltypes.Cell]seen{}
	for line := range strings.Lines(s.SQL(b.String(), "-A", "-t", "-q", "-F", "\t", "-v", "ON_ERROR_STOP=1")) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 {
			t.Fatalf("line %.200q: got %d fields, want 4", line, len(f))
		}
		v := seen{null: f[3] == "NULL"}
		if !v.null {
			data, err := hex.DecodeString(f[3])
			if err != nil {
				t.Fatal(err)
			}
			v.text = string(data)
		}
		if cellsBy[alltypes.Cell{Table: f[0], Column: f[1]}].kind == kindBits && !v.null {
			n, _ := new(big.Int).SetString(v.text, 2)
			v.text = n.String()
		}
		out[alltypes.Cell{Table: f[0], Column: f[1], ID: f[2]}] = v
	}
	return out
}

// inSQLite reads all values from a file.
func inSQLite(t *testing.T, path, prefix string, cells []typeCell) map[alltypes.Cell]seen {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	out := map[alltypes.Cell]seen{}
	for _, c := range cells {
		rows, err := db.Query(fmt.Sprintf(`SELECT id, "%s" FROM "%s%s"`, c.column, prefix, c.table))
		if err != nil {
			t.Errorf("table %s: %v", c.table, err)
			continue
		}
		for rows.Next() {
			var id string
			var v any
			if err := rows.Scan(&id, &v); err != nil {
				t.Fatal(err)
			}
			out[alltypes.Cell{Table: c.table, Column: c.column, ID: id}] = liteSeen(v)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	return out
}

// liteSeen prints what SQLite holds.
func liteSeen(v any) seen {
	switch v := v.(type) {
	case nil:
		return seen{null: true}
	case []byte:
		return seen{text: string(v)}
	case float64:
		return seen{text: strconv.FormatFloat(v, 'g', -1, 64)}
	}
	return seen{text: fmt.Sprint(v)}
}

// inMySQL asks MySQL or MariaDB, which print what they hold in the form in which
// the source prints it.
func inMySQL(t *testing.T, s *store, database string, which alltypes.Server) map[alltypes.Cell]alltypes.Printed {
	t.Helper()
	q := strings.Replace(alltypes.Query(which), "USE "+alltypes.Database+";", "USE `"+database+"`;", 1)
	out, err := alltypes.Parse(s.SQL(q, "-N", "--default-character-set=utf8mb4"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unfit says why a target cannot hold a value of MySQL or MariaDB; "" = it can.
// Under onUnfit null the value is NULL there, and nothing else is.
func unfit(from, to string, c typeCell, want alltypes.Printed) string {
	zero := len(want.Value) >= 10 && (want.Value[:4] == "0000" || want.Value[5:7] == "00" || want.Value[8:10] == "00")
	switch {
	case want.Null:
		return ""
	case to == "postgres" && (c.kind == kindDate || c.kind == kindMoment || c.kind == kindInstant) && zero:
		return "zero date"
	case (to == "mysql" || to == "mariadb") && c.kind == kindEnum && want.Value == "" && !strings.Contains(c.typ, ",'')"):
		return "index 0 of an enum"
	case to == "postgres" && c.unmapped && strings.Contains(want.Value, "?"):
		return "bytes without a character"
	case to == "postgres" && (c.kind == kindText || c.kind == kindEnum) && strings.Contains(want.Value, "\x00"):
		return "U+0000"
	}
	return ""
}

// allTypes are the tables of alltypes of a source at all targets, first as a
// snapshot, then as changes.
func (m *matrix) allTypes(t *testing.T) {
	which := alltypes.MySQL
	if m.from == "mariadb" {
		which = alltypes.MariaDB
	}
	src := m.all[m.from]
	src.SQL(alltypes.Create(which) + alltypes.Insert(which, 1))
	j := m.job(t, "types", alltypes.Database, "onUnfit: \"null\"")
	j.run()
	m.sameTypes(t, j, which)
	if t.Failed() {
		return
	}
	var b strings.Builder
	b.WriteString("SET sql_mode = ''; USE " + alltypes.Database + ";\n")
	for _, c := range alltypes.Cases(which) {
		fmt.Fprintf(&b, "UPDATE `%s` SET id = id + 5000 WHERE id %% 2 = 1;\nDELETE FROM `%s` WHERE id %% 5 = 2;\n", c.Name, c.Name)
	}
	src.SQL(b.String() + alltypes.Insert(which, 1001))
	j.run()
	m.sameTypes(t, j, which)
}

func (m *matrix) sameTypes(t *testing.T, j *matrixJob, which alltypes.Server) {
	t.Helper()
	cells := typeCells(which)
	want := inMySQL(t, m.all[m.from], alltypes.Database, which)
	for _, to := range allTargets {
		got := map[alltypes.Cell]seen{}
		switch to {
		case "sqlite":
			got = inSQLite(t, j.lite, j.home+".", cells)
		case "postgres":
			got = inPostgres(t, m.all[to], j.home, cells)
		default:
			for cell, p := range inMySQL(t, m.all[to], j.home, which) {
				v := seen{null: p.Null, text: p.Value}
				got[cell] = v
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s → %s: got %d values, want %d", m.from, to, len(got), len(want))
		}
		by := map[alltypes.Cell]typeCell{}
		for _, c := range cells {
			by[alltypes.Cell{Table: c.table, Column: c.column}] = c
		}
		for cell, w := range want {
			c := by[alltypes.Cell{Table: cell.Table, Column: cell.Column}]
			g, ok := got[cell]
			expected := seen{null: w.Null, text: w.Value}
			why := unfit(m.from, to, c, w)
			if why != "" {
				expected = seen{null: true}
			}
			if c.kind == kindVector && to == "postgres" && !expected.null {
				expected.text = vectorText(w.Value)
			}
			switch {
			case !ok:
				t.Errorf("%s → %s: %s.%s, id %s (%s): the row is missing", m.from, to, c.table, c.column, cell.ID, c.typ)
			case g == expected:
			case c.unmapped && to == "sqlite" && g.text == w.Stored:
			case g.null == expected.null && canonical(c.kind, g.text) == canonical(c.kind, expected.text):
			case c.kind == kindDocument && to == "mysql" && !g.null && !expected.null && meaning(g.text) == meaning(expected.text):
			default:
				t.Errorf("%s → %s: %s.%s, id %s (%s): got %s, want %s %s", m.from, to, c.table, c.column, cell.ID, c.typ, g, expected, why)
			}
		}
	}
}
