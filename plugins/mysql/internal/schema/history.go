package schema

import (
	"slices"
	"strings"
)

// Name is the name of a table.
type Name struct{ Database, Table string }

// String returns database.table.
func (n Name) String() string { return n.Database + "." + n.Table }

// History is the layouts of all tables at one place of the log.
type History struct {
	tables    map[Name]*entry
	databases map[string]collations
	gen       uint64
	place     Place
}

// entry is what is known of a table: its layout, or why it is not known, or that
// it was dropped.
type entry struct {
	table    *Table
	unknown  error
	version  uint64
	versions []Version
}

// NewHistory returns a history that knows no table.
func NewHistory() *History {
	return &History{tables: map[Name]*entry{}, databases: map[string]collations{}}
}

// Generation changes whenever a layout does.
func (h *History) Generation() uint64 { return h.gen }

// Get returns the layout of a table, or nil where it is not known. Servers that
// fold names to lower case write other letters into table maps than stand in
// statements, so a name that differs in case alone is taken when it is the only one.
func (h *History) Get(database, table string) *Table {
	if e := h.find(Name{database, table}); e != nil {
		return e.table
	}
	return nil
}

// Unknown says why a table is not known, where a statement made it so.
func (h *History) Unknown(database, table string) error {
	if e := h.find(Name{database, table}); e != nil {
		return e.unknown
	}
	return nil
}

func (h *History) find(n Name) *entry {
	if e := h.tables[n]; e != nil && (e.table != nil || e.unknown != nil) {
		return e
	}
	var only *entry
	for k, e := range h.tables {
		if e.table == nil && e.unknown == nil {
			continue // dropped
		}
		if strings.EqualFold(k.Database, n.Database) && strings.EqualFold(k.Table, n.Table) {
			if only != nil {
				return nil
			}
			only = e
		}
	}
	return only
}

func (h *History) put(n Name, t *Table, unknown error) {
	h.gen++
	e := h.tables[n]
	if e == nil {
		e = &entry{}
		h.tables[n] = e
	}
	e.version++
	if t != nil {
		t.Database, t.Name, t.Version = n.Database, n.Table, e.version
	}
	e.table, e.unknown = t, unknown
	e.note(n, h.place)
}

func (h *History) drop(n Name) {
	if e := h.tables[n]; e != nil {
		h.gen++
		e.version++
		e.table, e.unknown = nil, nil
		e.note(n, h.place)
	}
}

// in returns the tables of a database, in order.
func (h *History) in(database string) []Name {
	var out []Name
	for n, e := range h.tables {
		if n.Database == database && (e.table != nil || e.unknown != nil) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b Name) int { return strings.Compare(a.Table, b.Table) })
	return out
}

// Tables returns the names of all tables that the history has something on.
func (h *History) Tables() []Name {
	var out []Name
	for n := range h.tables {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b Name) int { return strings.Compare(a.String(), b.String()) })
	return out
}
