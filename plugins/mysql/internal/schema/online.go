package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Role is the part that a table has in an online schema change, as gh-ost and
// pt-online-schema-change name their tables.
type Role uint8

// The roles. Copy gets the new layout and takes the table's place; Helper is
// gh-ost's own log; Old is what the table is called afterwards.
const (
	NoRole Role = iota
	Copy
	Helper
	Old
)

// Online says by its name which part a table may have in the online schema change
// of another, the base: _t_gho, _t_ghc, _t_del and _t_20260102030405_del of
// gh-ost, _t_new and _t_old of pt-online-schema-change, which puts more underscores
// in front where a name is taken.
func Online(table string) (base string, role Role) {
	if !strings.HasPrefix(table, "_") {
		return "", NoRole
	}
	for _, s := range []struct {
		suffix string
		role   Role
	}{{"_gho", Copy}, {"_ghc", Helper}, {"_del", Old}} {
		if name, ok := strings.CutSuffix(table[1:], s.suffix); ok && name != "" {
			if s.role == Old {
				name = cutTime(name)
			}
			return name, s.role
		}
	}
	for _, s := range []struct {
		suffix string
		role   Role
	}{{"_new", Copy}, {"_old", Old}} {
		if name, ok := strings.CutSuffix(table, s.suffix); ok {
			if name = strings.TrimLeft(name, "_"); name != "" {
				return name, s.role
			}
		}
	}
	return "", NoRole
}

// cutTime takes the time away that gh-ost can put into the name of the old table.
func cutTime(name string) string {
	i := len(name) - 15
	if i < 1 || name[i] != '_' || strings.ContainsFunc(name[i+1:], func(r rune) bool { return r < '0' || r > '9' }) {
		return name
	}
	return name[:i]
}

// Steps gives the actions that turn one layout into another. It refuses where
// columns went and others came: a rename cannot be told from that.
func Steps(from, to *Table) ([]Action, error) {
	var drops, adds, changes []Action
	for i := range from.Columns {
		if c := &from.Columns[i]; !c.Functional && to.Column(c.Name) < 0 {
			drops = append(drops, Action{Kind: DropColumn, OldName: c.Name})
		}
	}
	last := ""
	for i := range to.Columns {
		c := &to.Columns[i]
		if c.Functional {
			continue
		}
		a := Action{Kind: AddColumn, Column: *c, After: last, First: last == ""}
		if at := from.Column(c.Name); at < 0 {
			adds = append(adds, a)
		} else if differs(&from.Columns[at], c) != "" {
			changes = append(changes, Action{Kind: ChangeColumn, Column: *c, OldName: from.Columns[at].Name})
		}
		last = c.Name
	}
	if len(drops) > 0 && len(adds) > 0 {
		return nil, fmt.Errorf("%w: the columns of %s.%s were %s and are %s: whether some were renamed cannot be told", ErrRefused, to.Database, to.Name, names(from), names(to))
	}
	out := slices.Concat(drops, adds, changes)
	same := func(a, b Index) bool { return strings.EqualFold(a.Name, b.Name) && slices.Equal(a.Parts, b.Parts) }
	for _, u := range from.Uniques {
		if !slices.ContainsFunc(to.Uniques, func(v Index) bool { return same(u, v) }) {
			out = append(out, Action{Kind: DropUnique, Index: Index{Name: u.Name}})
		}
	}
	if parts(from) != parts(to) {
		if len(from.Primary) > 0 {
			out = append(out, Action{Kind: DropPrimary})
		}
		if len(to.Primary) > 0 {
			out = append(out, Action{Kind: AddPrimary, Index: Index{Name: "PRIMARY", Parts: to.Primary}})
		}
	}
	for _, u := range to.Uniques {
		if !slices.ContainsFunc(from.Uniques, func(v Index) bool { return same(u, v) }) {
			out = append(out, Action{Kind: AddUnique, Index: u})
		}
	}
	return out, nil
}
