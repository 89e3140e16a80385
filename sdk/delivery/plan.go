package delivery

import (
	"slices"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// table is what schemas of one name share.
type table struct {
	name string
	seed uint64
	refs []ref // columns that foreign keys of other tables refer to
	seen [][]byte
	read bool // rows of a snapshot range were seen
	over bool // more than seen may hold

	joined  [][]byte // keys of the ranges so far, where they become one
	joining bool     // none of them was missed
	last    *plan
}

// watched reports whether the keys that change are collected: while the rows of a
// range come, and from the first to the last of ranges that become one, since what
// the stream adds to a range that was read already is not among any range's rows.
func (t *table) watched() bool { return t.read || t.joining }

// ref is the referenced side of a foreign key.
type ref struct {
	columns []string
	seed    uint64
}

// tie is a set of columns whose values tie changes to one another.
type tie struct {
	columns []int
	seed    uint64
}

// plan is what the engine knows of a schema. It does not change.
type plan struct {
	schema     *batch.Schema
	table      *table
	gen        uint64 // of the knowledge about foreign keys
	collated   []bool // by column: values that differ in bytes may be equal
	padded     []bool // by column: trailing spaces do not count
	uniques    []tie
	children   []tie // this side refers
	parents    []tie // this side is referred to
	fold       *tie  // the key, where it is compared under a collation
	keyless    bool
	oneLane    bool
	referenced bool
	normalize  bool // key bytes need normalizing before they choose a lane
	tied       bool // rows have touches at all

	constraints sdk.Constraints
}

func (t *table) plan(s *batch.Schema, c sdk.Constraints, gen uint64) *plan {
	p := &plan{schema: s, table: t, gen: gen, keyless: len(s.Key) == 0, referenced: c.Referenced, oneLane: c.OneLane}
	p.collated, p.padded = make([]bool, len(s.Columns)), make([]bool, len(s.Columns))
	for i := range s.Columns {
		p.collated[i], p.padded[i] = collation(&s.Columns[i])
		if slices.Contains(c.Collated, i) {
			p.collated[i] = true
		}
	}
	for _, k := range s.Key {
		col := &s.Columns[k]
		p.normalize = p.normalize || p.padded[k] || col.Type == batch.Float32 || col.Type == batch.Float64
		if p.collated[k] && p.fold == nil {
			p.fold = &tie{columns: s.Key, seed: hashString(t.seed, "key")}
		}
	}
	if p.keyless || p.fold != nil {
		p.oneLane = true
	}
	for _, ix := range slices.Concat(s.Uniques, c.Uniques) {
		if len(ix.Columns) == 0 || slices.Equal(ix.Columns, s.Key) || slices.ContainsFunc(p.uniques, func(u tie) bool { return slices.Equal(u.columns, ix.Columns) }) {
			continue
		}
		names := make([]string, 0, len(ix.Columns))
		for _, i := range ix.Columns {
			names = append(names, s.Columns[i].Name)
		}
		p.uniques = append(p.uniques, tie{columns: ix.Columns, seed: hashString(t.seed, "unique\x00"+strings.Join(names, "\x00"))})
	}
	for _, fk := range slices.Concat(s.ForeignKeys, c.ForeignKeys) {
		if r := reference(s, &fk); !slices.ContainsFunc(p.children, func(u tie) bool { return u.seed == r.seed && slices.Equal(u.columns, fk.Columns) }) {
			p.children = append(p.children, tie{columns: fk.Columns, seed: r.seed})
		}
	}
	for _, r := range t.refs {
		var columns []int
		for _, name := range r.columns {
			if i := s.Column(name); i >= 0 {
				columns = append(columns, i)
			}
		}
		if len(columns) == len(r.columns) {
			p.parents = append(p.parents, tie{columns: columns, seed: r.seed})
		}
	}
	p.tied = len(p.uniques)+len(p.children)+len(p.parents) > 0 || p.fold != nil || p.keyless
	return p
}

// reference names the referenced side of a foreign key of s.
func reference(s *batch.Schema, fk *batch.ForeignKey) ref {
	return ref{columns: fk.RefColumns, seed: hashString(hashString(0, referred(s, fk)), "ref\x00"+strings.Join(fk.RefColumns, "\x00"))}
}

func referred(s *batch.Schema, fk *batch.ForeignKey) string {
	space := fk.RefSchema
	if space == "" {
		space = s.Namespace
	}
	if space == "" {
		return fk.RefTable
	}
	return space + "." + fk.RefTable
}

// collation says how the column's values compare: whether values that differ in
// bytes may be equal, and whether that is by trailing spaces alone.
func collation(c *batch.Column) (collated, padded bool) {
	switch c.Type {
	case batch.String, batch.Native, batch.JSON, batch.Array, batch.Map:
	default:
		return false, false
	}
	name := strings.ToLower(c.Collation)
	switch name {
	case "", "binary", "c", "posix", "ucs_basic", "c.utf-8", "c.utf8", "utf8mb4_0900_bin":
		return false, false
	case "rtrim":
		return false, true
	}
	if strings.HasSuffix(name, "_bin") || strings.HasSuffix(name, "_nopad_bin") {
		return false, true
	}
	return true, false
}
