package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Differs says in what two layouts of a table differ as far as rows are
// concerned, "" when they do not. One may come from statements and the other
// from SHOW CREATE TABLE, which writes the same things in other words.
func Differs(a, b *Table) string {
	if len(a.Columns) != len(b.Columns) {
		return fmt.Sprintf("%d columns (%s), and %d (%s)", len(a.Columns), names(a), len(b.Columns), names(b))
	}
	for i := range a.Columns {
		if d := differs(&a.Columns[i], &b.Columns[i]); d != "" {
			return fmt.Sprintf("column %d: %s", i+1, d)
		}
	}
	if p, q := parts(a), parts(b); p != q {
		return fmt.Sprintf("primary key (%s), and (%s)", p, q)
	}
	if p, q := uniques(a), uniques(b); p != q {
		return fmt.Sprintf("unique keys %s, and %s", p, q)
	}
	if x, ok := a.Transactional(); ok {
		if y, ok := b.Transactional(); ok && x != y {
			return fmt.Sprintf("engine %s, and %s", a.Engine, b.Engine)
		}
	}
	return ""
}

func differs(a, b *Column) string {
	if !strings.EqualFold(a.Name, b.Name) {
		return fmt.Sprintf("%s, and %s", a.Name, b.Name)
	}
	if a.Functional && b.Functional {
		return ""
	}
	if x, y := shape(a), shape(b); x != y {
		return fmt.Sprintf("%s is %s, and %s", a.Name, x, y)
	}
	return ""
}

// shape is what of a column decides about its values.
func shape(c *Column) string {
	base, length, scale := c.Base, c.Length, c.Scale
	switch base {
	case "json":
		if c.Charset != "" {
			base = "longtext" // MariaDB
		}
		length, scale = -1, -1
	case "char", "varchar", "binary", "varbinary", "decimal", "bit", "vector":
		scale = max(scale, 0)
	case "time", "datetime", "timestamp":
		length = max(length, 0)
	case "float", "double":
		// The digits of FLOAT(7,3) only bound what can be written.
		if base == "float" && scale < 0 && length > 24 {
			base = "double"
		}
		length, scale = -1, -1
	case "geomcollection":
		base = "geometrycollection"
	default:
		length, scale = -1, -1 // widths for display
	}
	s := fmt.Sprintf("%s(%d,%d)", base, length, scale)
	for _, f := range []struct {
		on   bool
		name string
	}{{c.Unsigned, "unsigned"}, {c.NotNull, "not null"}, {c.Virtual, "virtual"}, {c.Generated, "stored"}, {c.Hidden, "invisible"}, {c.Functional, "functional"}} {
		if f.on {
			s += " " + f.name
		}
	}
	if c.Charset != "" && c.Charset != "binary" {
		s += " " + c.Charset + " " + c.Collation
	}
	if base == "enum" || base == "set" {
		s += " " + strings.Join(c.Labels, "\x00")
	}
	return s
}

func names(t *Table) string {
	var n []string
	for i := range t.Columns {
		n = append(n, t.Columns[i].Name)
	}
	return strings.Join(n, ", ")
}

// parts is the primary key. MariaDB adds a prefix to columns of types that it
// cannot index as a whole.
func parts(t *Table) string {
	var out []string
	for _, p := range t.Primary {
		s := strings.ToLower(p.Column)
		at := t.Column(p.Column)
		if p.Prefix > 0 && at >= 0 && (strings.HasSuffix(t.Columns[at].Base, "char") || strings.HasSuffix(t.Columns[at].Base, "binary")) {
			s += fmt.Sprintf("(%d)", p.Prefix)
		}
		out = append(out, s)
	}
	return strings.Join(out, ",")
}

func uniques(t *Table) string {
	var out []string
	for _, u := range t.Uniques {
		if !u.Expression {
			// Names that the server thinks up depend on other indexes, and MariaDB
			// adds a prefix to keys over types that it hashes.
			var cols []string
			for _, p := range u.Parts {
				cols = append(cols, strings.ToLower(p.Column))
			}
			out = append(out, "("+strings.Join(cols, ",")+")")
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
