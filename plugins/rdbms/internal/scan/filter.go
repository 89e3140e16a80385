package scan

import (
	"errors"
	"path"
	"strings"
)

// Filter says which tables are read: those that match one of the patterns that
// include, if there are any, and none of those that exclude.
type Filter []pattern

type pattern struct {
	exclude          bool
	namespace, table string
}

// NewFilter reads patterns namespace.table with * and ?, an exclamation mark in
// front to exclude. Without a dot a pattern names tables of any namespace.
func NewFilter(patterns []string) (Filter, error) {
	var f Filter
	for _, s := range patterns {
		var p pattern
		rest := s
		rest, p.exclude = strings.CutPrefix(rest, "!")
		ns, table, ok := strings.Cut(rest, ".")
		if !ok {
			ns, table = "*", ns
		}
		p.namespace, p.table = ns, table
		for _, part := range []string{ns, table} {
			if _, err := path.Match(part, ""); err != nil || part == "" {
				return nil, errors.New("not of the form namespace.table: " + s)
			}
		}
		f = append(f, p)
	}
	return f, nil
}

// Wants reports whether the table is read. The tables in which a writer keeps its
// progress are read when a pattern names them in full only.
func (f Filter) Wants(namespace, table string) bool {
	included, any := false, false
	for _, p := range f {
		any = any || !p.exclude
		a, _ := path.Match(p.namespace, namespace)
		b, _ := path.Match(p.table, table)
		if !a || !b {
			continue
		}
		if p.exclude {
			return false
		}
		included = included || !own(table) || p.table == table
	}
	if any {
		return included
	}
	return !own(table)
}

func own(table string) bool {
	switch table {
	case "datalink_progress", "datalink_state", "datalink_dead_letters":
		return true
	}
	return false
}
