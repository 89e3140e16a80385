package scan

import (
	"slices"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Selection is what of the tables is read.
type Selection struct {
	Filter  Filter
	Where   map[string]string   // by namespace.table
	Columns map[string][]string // by namespace.table; the key is always read
	matched map[string]bool
}

// Apply returns the table with the columns and rows that were chosen. Indexes and
// foreign keys on other columns go.
func (s *Selection) Apply(t *Table) (*Table, error) {
	name := t.Schema.Name()
	if s.matched == nil {
		s.matched = map[string]bool{}
	}
	s.matched[name] = true
	t.Where = s.Where[name]
	want := s.Columns[name]
	if len(want) == 0 {
		return t, nil
	}
	for _, c := range want {
		if t.Schema.Column(c) < 0 {
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "columns: table %s has no column %s", name, c)
		}
	}
	in := t.Schema
	out := *in
	out.Columns, out.Key, out.Uniques, out.ForeignKeys = nil, nil, nil, nil
	at := make([]int, len(in.Columns))
	for i := range in.Columns {
		at[i] = -1
		if slices.Contains(want, in.Columns[i].Name) || slices.Contains(in.Key, i) {
			at[i] = len(out.Columns)
			out.Columns = append(out.Columns, in.Columns[i])
		}
	}
	move := func(places []int) []int {
		var to []int
		for _, p := range places {
			if at[p] < 0 {
				return nil
			}
			to = append(to, at[p])
		}
		return to
	}
	out.Key = move(in.Key)
	for _, u := range in.Uniques {
		if c := move(u.Columns); c != nil {
			out.Uniques = append(out.Uniques, batch.Index{Name: u.Name, Columns: c})
		}
	}
	for _, f := range in.ForeignKeys {
		if c := move(f.Columns); c != nil {
			f.Columns = c
			out.ForeignKeys = append(out.ForeignKeys, f)
		}
	}
	t.Schema = &out
	return t, nil
}

// Unmatched names a table of where or columns that is not read.
func (s *Selection) Unmatched() error {
	for _, list := range [][]string{keys(s.Where), keys(s.Columns)} {
		for _, name := range list {
			if !s.matched[name] {
				return sdk.Faultf(sdk.CodeInvalidConfig, "where and columns name table %s, which is not among those that are read", name).Suggest("names are namespace.table")
			}
		}
	}
	return nil
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
