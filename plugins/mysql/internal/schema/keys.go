package schema

import (
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/internal/charset"
)

// unique returns the place of the unique index with that name, or -1.
func (t *Table) unique(name string) int {
	return slices.IndexFunc(t.Uniques, func(u Index) bool { return strings.EqualFold(u.Name, name) })
}

func (t *Table) dropForeignKey(name string) {
	t.ForeignKeys = slices.DeleteFunc(t.ForeignKeys, func(f ForeignKey) bool { return strings.EqualFold(f.Name, name) })
}

// dropFromKeys takes a column out of all keys; one that has no column left is
// gone.
func (t *Table) dropFromKeys(name string) {
	is := func(p Part) bool { return strings.EqualFold(p.Column, name) }
	t.Primary = slices.DeleteFunc(slices.Clone(t.Primary), is)
	uniques := t.Uniques[:0:0]
	for _, u := range t.Uniques {
		u.Parts = slices.DeleteFunc(slices.Clone(u.Parts), is)
		if len(u.Parts) > 0 || u.Expression {
			uniques = append(uniques, u)
		}
	}
	t.Uniques = uniques
}

func (t *Table) renameInKeys(names map[string]string) {
	if len(names) == 0 {
		return
	}
	rename := func(parts []Part) []Part {
		parts = slices.Clone(parts)
		for i := range parts {
			if n := names[strings.ToLower(parts[i].Column)]; n != "" {
				parts[i].Column = n
			}
		}
		return parts
	}
	t.Primary = rename(t.Primary)
	for i := range t.Uniques {
		t.Uniques[i].Parts = rename(t.Uniques[i].Parts)
	}
	for i := range t.ForeignKeys {
		cols := slices.Clone(t.ForeignKeys[i].Columns)
		for k := range cols {
			if n := names[strings.ToLower(cols[k])]; n != "" {
				cols[k] = n
			}
		}
		t.ForeignKeys[i].Columns = cols
	}
}

func (t *Table) hasDuplicates() bool {
	seen := map[string]bool{}
	for i := range t.Columns {
		n := strings.ToLower(t.Columns[i].Name)
		if seen[n] {
			return true
		}
		seen[n] = true
	}
	return false
}

// grow says which type a TEXT column becomes when its character set changes to
// one whose characters are longer, "" for the same.
func grow(c *Column, cs string) string {
	sizes := []string{"tinytext", "text", "mediumtext", "longtext"}
	i := slices.Index(sizes, c.Base)
	if i < 0 || i == 3 || charset.MaxLen(cs) <= charset.MaxLen(c.Charset) {
		return ""
	}
	return sizes[i+1]
}
