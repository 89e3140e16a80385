package endtoend

import (
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/alltypes"
	"github.com/datalink-go/datalink/sdk/batch"
)

// pgCell is a value of the table of all types of PostgreSQL.
type pgCell struct{ column, id string }

const pgTypesTable = "alltypes.types"

// pgTypes is the table of all types of PostgreSQL at all targets, first as a
// snapshot, then as changes.
func (m *matrix) pgTypes(t *testing.T) {
	src := m.all["postgres"]
	src.SQL("CREATE SCHEMA alltypes;\n" + alltypes.Types + alltypes.Create(pgTypesTable, "") + alltypes.Insert(pgTypesTable, 1))
	j := m.job(t, "types", "alltypes", "onUnfit: \"null\"")
	j.run()
	m.samePGTypes(t, j)
	if t.Failed() {
		return
	}
	src.SQL("UPDATE " + pgTypesTable + " SET id = id + 5000 WHERE id % 2 = 1; DELETE FROM " + pgTypesTable + " WHERE id = 4;\n" + alltypes.Insert(pgTypesTable, 1001))
	j.run()
	m.samePGTypes(t, j)
}

func (m *matrix) samePGTypes(t *testing.T, j *matrixJob) {
	t.Helper()
	src := m.all["postgres"]
	want := pgValues(t, src, pgTypesTable)
	for _, to := range allTargets {
		var got map[pgCell]seen
		switch to {
		case "postgres":
			got = pgValues(t, src, j.home+".types")
		case "sqlite":
			got = liteValues(t, j.lite, j.home+".types")
		default:
			got = myValues(t, m.all[to], j.home)
		}
		if len(got) != len(want) {
			t.Errorf("postgres → %s: got %d values, want %d", to, len(got), len(want))
		}
		for _, c := range alltypes.Cases {
			for cell, w := range want {
				if cell.column != c.Name {
					continue
				}
				expected, why := pgExpected(to, &c, w)
				if g, ok := got[cell]; !ok || g.null != expected.null || pgCanonical(&c, to, g.text) != pgCanonical(&c, to, expected.text) {
					t.Errorf("postgres → %s: %s (%s), id %s: got %s, want %s, from %s %s", to, c.Name, c.Type, cell.id, g, expected, w, why)
				}
			}
		}
	}
}

// pgValues has PostgreSQL print all values: arrays as their bounds and elements,
// since one of a type that travels as text has another separator there, and all
// else as the type's output function has it, which casts do not.
func pgValues(t *testing.T, s *store, table string) map[pgCell]seen {
	t.Helper()
	var b strings.Builder
	b.WriteString("SET timezone = 'UTC'; SET intervalstyle = 'iso_8601'; SET datestyle = 'ISO, MDY'; SET extra_float_digits = 3; SET lc_monetary = 'C';\n")
	for _, c := range alltypes.Cases {
		e := "format('%s', " + c.Name + ")"
		switch c.Want {
		case batch.Array:
			e = "coalesce(array_dims(" + c.Name + "), '') || '=' || array_to_string(" + c.Name + ", chr(1), chr(2))"
		case batch.Interval:
			e = "(extract(year FROM " + c.Name + ") * 12 + extract(month FROM " + c.Name + "))::bigint || ' ' || extract(day FROM " + c.Name + ")::bigint || ' ' || " +
				"(extract(hour FROM " + c.Name + ")::numeric * 3600000000 + extract(minute FROM " + c.Name + ")::numeric * 60000000 + extract(microseconds FROM " + c.Name + "))::numeric(30)"
		}
		fmt.Fprintf(&b, "SELECT '%s', id, CASE WHEN num_nulls(%s) = 1 THEN 'NULL' ELSE encode(convert_to(%s, 'UTF8'), 'hex') END FROM %s;\n", c.Name, c.Name, e, table)
	}
	return parseCells(t, s.SQL(b.String(), "-A", "-t", "-q", "-F", "\t", "-v", "ON_ERROR_STOP=1"))
}

func parseCells(t *testing.T, out string) map[pgCell]seen {
	t.Helper()
	cells := map[pgCell]seen{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 3 {
			t.Fatalf("line %.200q: got %d fields, want 3", line, len(f))
		}
		v := seen{null: f[2] == "NULL"}
		if !v.null {
			data, err := hex.DecodeString(f[2])
			if err != nil {
				t.Fatal(err)
			}
			v.text = string(data)
		}
		cells[pgCell{f[0], f[1]}] = v
	}
	return cells
}

func myValues(t *testing.T, s *store, database string) map[pgCell]seen {
	t.Helper()
	var b strings.Builder
	b.WriteString("SET NAMES utf8mb4, time_zone = '+00:00'; USE `" + database + "`;\n")
	for _, c := range alltypes.Cases {
		e := "CAST(" + c.Name + " AS CHAR)"
		switch c.Want {
		case batch.Bit:
			e = "CAST(" + c.Name + " + 0 AS CHAR)"
		case batch.Float32:
			e = "CAST(CAST(" + c.Name + " AS DOUBLE) AS CHAR)"
		case batch.Float64:
			e = "CONCAT(" + c.Name + ")"
		case batch.String, batch.Enum, batch.JSON, batch.Native:
			e = "CONVERT(" + c.Name + " USING utf8mb4)"
		case batch.Bytes, batch.Array:
			e = c.Name
		}
		fmt.Fprintf(&b, "SELECT '%s', id, IFNULL(HEX(%s), 'NULL') FROM types;\n", c.Name, e)
	}
	got := parseCells(t, s.SQL(b.String(), "-N", "--default-character-set=utf8mb4"))
	arrays(t, got)
	return got
}

func liteValues(t *testing.T, path, table string) map[pgCell]seen {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	cells := map[pgCell]seen{}
	for _, c := range alltypes.Cases {
		rows, err := db.Query(fmt.Sprintf(`SELECT id, %s FROM "%s"`, c.Name, table))
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id string
			var v any
			if err := rows.Scan(&id, &v); err != nil {
				t.Fatal(err)
			}
			cells[pgCell{c.Name, id}] = liteSeen(v)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
	}
	arrays(t, cells)
	return cells
}

// arrays turns the bytes of arrays into the form of pgValues.
func arrays(t *testing.T, cells map[pgCell]seen) {
	t.Helper()
	elems := map[string]*batch.Column{}
	for i := range alltypes.Cases {
		c := &alltypes.Cases[i]
		if c.Want != batch.Array {
			continue
		}
		for k := range alltypes.Cases {
			if e := &alltypes.Cases[k]; e.Type+"[]" == c.Type {
				elems[c.Name] = &batch.Column{Type: e.Want, Scale: 6}
			}
		}
		if elems[c.Name] == nil {
			elems[c.Name] = &batch.Column{Type: batch.Decimal} // numeric(6,2)
		}
	}
	for cell, v := range cells {
		elem := elems[cell.column]
		if elem == nil || v.null {
			continue
		}
		dims, vals, err := batch.DecodeArray([]byte(v.text), elem.Type)
		if err != nil {
			continue // raw: the exact text
		}
		out := ""
		for _, d := range dims {
			out += fmt.Sprintf("[%d:%d]", d.Lower, d.Lower+d.Len-1)
		}
		var texts []string
		for i := range vals {
			texts = append(texts, elementText(elem, &vals[i]))
		}
		v.text = out + "=" + strings.Join(texts, "\x01")
		cells[cell] = v
	}
}

func elementText(c *batch.Column, v *batch.Value) string {
	switch v.State {
	case batch.Null:
		return "\x02"
	case batch.Raw:
		_, data, _ := v.Raw()
		return string(data)
	}
	switch c.Type {
	case batch.Bool:
		return map[uint64]string{0: "f", 1: "t"}[v.Uint64()]
	case batch.Bytes:
		return `\x` + hex.EncodeToString(v.Bytes())
	case batch.Native:
		return string(v.Bytes())
	case batch.Interval:
		b := v.Bytes() // months, days, microseconds
		return fmt.Sprint(int32(binary.LittleEndian.Uint32(b)), " ", int32(binary.LittleEndian.Uint32(b[4:])), " ", int64(binary.LittleEndian.Uint64(b[8:])))
	case batch.DateTime:
		text, _ := batch.AppendText(nil, c, v)
		return canonical(kindMoment, string(text))
	}
	text, _ := batch.AppendText(nil, c, v)
	return string(text)
}

// pgExpected is what a target holds of a value under onUnfit null, as README of
// the plugin has it, and why where it is not the value itself.
func pgExpected(to string, c *alltypes.Case, v seen) (seen, string) {
	my := to == "mysql" || to == "mariadb"
	null := func(why string) (seen, string) { return seen{null: true}, why }
	if v.null || to == "postgres" {
		return v, ""
	}
	infinite := strings.Contains(strings.ToLower(v.text), "infinity") || v.text == "NaN"
	switch c.Want {
	case batch.Bool:
		return seen{text: map[string]string{"t": "1", "f": "0"}[v.text]}, ""
	case batch.Bytes:
		return seen{text: unhex(strings.TrimPrefix(v.text, `\x`))}, ""
	case batch.Float32, batch.Float64, batch.Decimal:
		if my && infinite {
			return null("no such number there")
		}
		if to == "mariadb" && v.text == "-0" {
			return seen{text: "0"}, "zero has no sign there"
		}
		if my && c.Want == batch.Decimal && tooLong(v.text) {
			return null("more than 35 digits")
		}
	case batch.Date, batch.DateTime, batch.Timestamp:
		text, year := civil(v.text)
		switch {
		case my && infinite:
			return null("infinity")
		case my && (year < 0 || year > 9999):
			return null("a year that dates there do not have")
		}
		return seen{text: text}, ""
	case batch.Interval:
		var months, days, micros int64
		if _, err := fmt.Sscan(v.text, &months, &days, &micros); err != nil {
			return seen{text: err.Error()}, ""
		}
		return seen{text: fmt.Sprintf("%d mons %d days %s", months, days, batch.AppendTime(nil, micros, 6))}, ""
	case batch.Bit:
		n, _ := new(big.Int).SetString(v.text, 2)
		return seen{text: n.String()}, ""
	case batch.JSON:
		if to == "mysql" && (strings.Contains(v.text, `"a" :2`) || strings.Contains(v.text, "12345678901234567890.123")) {
			return null("a document that would change")
		}
	case batch.Array:
		switch {
		case c.Type == "timestamp[]" && strings.Contains(v.text, "294276") && my:
			return null("a year that the batch has no room for")
		case c.Type == "timestamp[]" && strings.Contains(v.text, "294276"):
			return seen{text: `{"294276-01-01 00:00:00"}`}, "a year that the batch has no room for"
		case c.Type == "interval[]":
			return seen{text: "[1:2]=0 1 0\x010 0 -1000000"}, ""
		}
	}
	return v, ""
}

// pgCanonical makes equal values equal.
func pgCanonical(c *alltypes.Case, to, s string) string {
	switch c.Want {
	case batch.Float32:
		// Some print the nearest double.
		if f, err := strconv.ParseFloat(s, 32); err == nil {
			return fmt.Sprint(float32(f))
		}
	case batch.TimeTZ:
		return strings.Replace(s, ".000000", "", 1)
	case batch.Float64:
		return canonical(kindFloat, s)
	case batch.Decimal, batch.Int16, batch.Int32, batch.Int64, batch.Uint32:
		return canonical(kindNumber, s)
	case batch.DateTime, batch.Timestamp, batch.Time:
		return canonical(kindMoment, strings.TrimSuffix(s, "+00"))
	case batch.JSON:
		if to == "mysql" {
			return meaning(s)
		}
	}
	return s
}

// tooLong reports a number that decimal(65,30) does not hold.
func tooLong(s string) bool {
	whole, frac, _ := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	frac = strings.TrimRight(frac, "0")
	return len(whole) > 35 || len(frac) > 30
}

// civil turns PostgreSQL's date or time stamp into one with astronomical years,
// and tells the year.
func civil(s string) (string, int) {
	s = strings.TrimSuffix(s, "+00")
	s, bc := strings.CutSuffix(s, " BC")
	s = strings.TrimSuffix(s, "+00")
	y, rest, ok := strings.Cut(s, "-")
	year, err := strconv.Atoi(y)
	if !ok || err != nil {
		return s, 0
	}
	if bc {
		year = 1 - year
	}
	if year < 0 {
		return fmt.Sprintf("-%04d-%s", -year, rest), year
	}
	return fmt.Sprintf("%04d-%s", year, rest), year
}

func unhex(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		return "not hexadecimal: " + s
	}
	return string(b)
}
