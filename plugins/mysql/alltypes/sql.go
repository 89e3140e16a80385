package alltypes

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// session is what every script begins with: values that a strict server refuses
// are wanted, and the zone is neither UTC nor whole hours apart from it.
const session = "SET NAMES utf8mb4, sql_mode = '', time_zone = '+03:30';\n"

// Database holds the tables of all cases.
const Database = "alltypes"

// Create gives the statements that make the database and its tables.
func Create(s Server) string {
	var b strings.Builder
	b.WriteString(session + "CREATE DATABASE " + Database + " CHARACTER SET utf8mb4;\nUSE " + Database + ";\n")
	for _, c := range Cases(s) {
		fmt.Fprintf(&b, "CREATE TABLE `%s` (id INT PRIMARY KEY", c.Name)
		for _, col := range c.Columns() {
			fmt.Fprintf(&b, ", `%s` %s", col.Name, col.Type)
		}
		fmt.Fprintf(&b, "%s) CHARACTER SET utf8mb4;\n", c.Keys)
	}
	return b.String()
}

// Insert gives the statements that write each value of each case, under ids that
// count from first.
func Insert(s Server, first int) string {
	var b strings.Builder
	b.WriteString(session + "USE " + Database + ";\n")
	for _, c := range Cases(s) {
		b.WriteString("BEGIN;\n")
		for i, v := range c.Values {
			if c.Name == "serial" && first != 1 {
				v = fmt.Sprintf("%s - %d", v, i+1) // its values are unique
			}
			fmt.Fprintf(&b, "INSERT INTO `%s` (id, v) VALUES (%d, %s);\n", c.Name, first+i, v)
		}
		b.WriteString("COMMIT;\n")
	}
	return b.String()
}

// Query gives the statements that print every value of every case: lines of
// table, column, id, and the value in hexadecimal or NULL; for cases with
// unmapped characters also the stored bytes. The zone is UTC.
func Query(s Server) string {
	var b strings.Builder
	b.WriteString("SET NAMES utf8mb4, time_zone = '+00:00';\nUSE " + Database + ";\n")
	for _, c := range Cases(s) {
		for _, col := range c.Columns() {
			fmt.Fprintf(&b, "SELECT '%s', '%s', id, IFNULL(HEX(%s), 'NULL')", c.Name, col.Name, col.Expression())
			if c.Unmapped {
				fmt.Fprintf(&b, ", IFNULL(HEX(CAST(%s AS BINARY)), 'NULL')", col.Name)
			}
			fmt.Fprintf(&b, " FROM `%s` ORDER BY id;\n", c.Name)
		}
	}
	return b.String()
}

// Expression is the SQL by which the server prints the column in its form.
func (c *Column) Expression() string {
	name := "`" + strings.ReplaceAll(c.Name, "`", "``") + "`"
	switch c.Form {
	case Number:
		return "CAST(" + name + " + 0 AS CHAR)"
	case Float:
		// The server prints six digits of a FLOAT, and all of a DOUBLE; what CAST
		// gives is cut to 22 characters.
		if strings.EqualFold(c.Type, "DOUBLE") {
			return "CONCAT(" + name + ")"
		}
		return "CAST(CAST(" + name + " AS DOUBLE) AS CHAR)"
	case Text:
		return "CONVERT(" + name + " USING utf8mb4)"
	case Raw:
		return name
	}
	return "CAST(" + name + " AS CHAR)"
}

// Cell names a value.
type Cell struct {
	Table, Column string
	ID            string
}

// Printed is a value as the server prints it.
type Printed struct {
	Null   bool
	Value  string
	Stored string // bytes as stored, of cases with unmapped characters
}

// Parse reads what the server's client (options -N, or --skip-column-names)
// printed for Query.
func Parse(out string) (map[Cell]Printed, error) {
	cells := map[Cell]Printed{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(f) < 4 {
			return nil, fmt.Errorf("line %q: %d fields, want 4 or 5", line, len(f))
		}
		var p Printed
		if f[3] == "NULL" {
			p.Null = true
		} else {
			v, err := hex.DecodeString(f[3])
			if err != nil {
				return nil, fmt.Errorf("line %.200q: %w", line, err)
			}
			p.Value = string(v)
		}
		if len(f) > 4 && !p.Null {
			v, err := hex.DecodeString(f[4])
			if err != nil {
				return nil, fmt.Errorf("line %.200q: %w", line, err)
			}
			p.Stored = string(v)
		}
		cells[Cell{f[0], f[1], f[2]}] = p
	}
	return cells, nil
}
