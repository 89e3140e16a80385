package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Dialect is what Compare needs to know of the kind of database.
type Dialect interface {
	Names
	// TableName writes the quoted name of a table with its namespace.
	TableName(namespace, name string) string
	// Define writes a column's definition, name included, as it is created. Key
	// says that it is part of the key.
	Define(c *batch.Column, key bool) string
	// Fits says what is wrong with a column of the target for the values of the
	// source's, "" for nothing, and whether it could only be too narrow for some
	// of the values.
	Fits(c *batch.Column, have *Column, key bool) (found string, narrow bool)
	// Retype writes the statement that gives the column the type it needs.
	Retype(t *Table, have *Column, c *batch.Column, key bool) string
	// AddKey writes the statement that makes the unique key rows are found by.
	AddKey(t *Table, columns []string) string
	// AddColumn writes the statement that adds a column.
	AddColumn(t *Table, c *batch.Column) string
	// Folded says whether the unique key finds rows that differ in bytes: the
	// column's collation folds letters or spaces.
	Folded(have *Column) bool
}

// Match is how a schema meets a table.
type Match struct {
	Columns []int // by column of the schema: its place in the table, -1 = left out
	Narrow  []bool
	// Primary says that rows are found by the table's primary key, Others that a row
	// can meet another one in a unique key beside that.
	Primary bool
	Others  bool
	// Missing are columns that the table lacks and the policy adds.
	Missing []int

	Constraints sdk.Constraints
}

// Compare checks a table against the schema of the rows that it is to hold. The
// fault names all that is wrong.
func Compare(d Dialect, o *Options, s *batch.Schema, t *Table) (*Match, error) {
	m := &Match{Columns: make([]int, len(s.Columns)), Narrow: make([]bool, len(s.Columns))}
	wrong := slices.Clone(t.Faults)
	for i := range s.Columns {
		c, key := &s.Columns[i], slices.Contains(s.Key, i)
		at := t.Find(d, c.Name)
		m.Columns[i] = at
		if at < 0 {
			switch {
			case o.OnMissingColumn == Add && !key:
				m.Missing = append(m.Missing, i)
			case o.OnMissingColumn != Ignore || key:
				wrong = append(wrong, Fault{fmt.Sprintf("column %s (%s) is missing", c.Name, c.Type), d.AddColumn(t, c)})
			}
			continue
		}
		have := &t.Columns[at]
		if have.Generated {
			if c.Flags&(batch.Generated|batch.Virtual) != 0 {
				// Both sides compute it.
				m.Columns[i] = -1
				continue
			}
			wrong = append(wrong, Fault{"column " + have.Name + " is generated in the target", d.Retype(t, have, c, key)})
			continue
		}
		found, narrow := d.Fits(c, have, key)
		m.Narrow[i] = narrow
		if found != "" && (!narrow || o.OnUnfit == ErrorPolicy) {
			wrong = append(wrong, Fault{fmt.Sprintf("column %s is %s: %s", have.Name, have.Type, found), d.Retype(t, have, c, key)})
		}
	}
	for i := range t.Columns {
		have := &t.Columns[i]
		if !have.Nullable && !have.HasValue && !have.Generated && Place(d, s, have.Name) < 0 {
			wrong = append(wrong, Fault{
				fmt.Sprintf("column %s is NOT NULL without a default, and the source has no such column", have.Name),
				"ALTER TABLE " + d.TableName(t.Namespace, t.Name) + " DROP COLUMN " + d.Quote(have.Name),
			})
		}
	}
	key := m.key(s, t)
	if len(s.Key) > 0 && key < 0 && len(m.Missing) == 0 {
		wrong = append(wrong, Fault{"no primary key or unique index on exactly " + List(d, KeyNames(s)), d.AddKey(t, KeyNames(s))})
	}
	if len(wrong) > 0 {
		return nil, mismatch(d, s, t, wrong)
	}
	m.constrain(d, s, t, key)
	return m, nil
}

func mismatch(d Dialect, s *batch.Schema, t *Table, wrong []Fault) error {
	var found, mend []string
	for _, w := range wrong {
		found = append(found, w.Found)
		if w.Mend != "" && !slices.Contains(mend, w.Mend) {
			mend = append(mend, w.Mend)
		}
	}
	return sdk.Faultf(sdk.CodeSchemaMismatch, "table %s in the target does not fit table %s of the source: %s",
		d.TableName(t.Namespace, t.Name), s.Name(), strings.Join(found, "; ")).Suggest("%s", strings.Join(mend, "; "))
}

// key returns the place of the unique key on exactly the columns of the schema's,
// -1 where there is none.
func (m *Match) key(s *batch.Schema, t *Table) int {
	var want []int
	for _, k := range s.Key {
		if m.Columns[k] < 0 {
			return -1
		}
		want = append(want, m.Columns[k])
	}
	slices.Sort(want)
	return slices.IndexFunc(t.Uniques, func(u Unique) bool {
		return u.Plain && slices.Equal(slices.Sorted(slices.Values(u.Columns)), want)
	})
}

// constrain says what of the target ties changes to one another.
func (m *Match) constrain(d Dialect, s *batch.Schema, t *Table, key int) {
	c := &m.Constraints
	c.Referenced = t.Referenced
	places := func(at []int) ([]int, bool) {
		var out []int
		for _, a := range at {
			p := slices.Index(m.Columns, a)
			if p < 0 {
				return nil, false
			}
			out = append(out, p)
		}
		return out, true
	}
	for i := range t.Uniques {
		u := &t.Uniques[i]
		on, known := places(u.Columns)
		for _, p := range on {
			if d.Folded(&t.Columns[m.Columns[p]]) && !slices.Contains(c.Collated, p) {
				c.Collated = append(c.Collated, p)
			}
		}
		if i == key {
			m.Primary = u.Primary
			continue
		}
		filled := slices.ContainsFunc(u.Columns, func(a int) bool { return !slices.Contains(m.Columns, a) })
		switch {
		case known && u.Plain:
			c.Uniques = append(c.Uniques, batch.Index{Name: u.Name, Columns: on})
			m.Others = true
		case filled && u.Plain && len(u.Columns) == 1 && t.Columns[u.Columns[0]].HasValue:
			// A number that the target counts by itself meets nothing.
		default:
			// Which changes meet in it cannot be said from their values.
			c.OneLane, m.Others = true, true
		}
	}
	for i := range t.ForeignKeys {
		f := &t.ForeignKeys[i]
		on, known := places(f.Columns)
		if !known {
			c.OneLane = true
			continue
		}
		c.ForeignKeys = append(c.ForeignKeys, batch.ForeignKey{
			Name: f.Name, Columns: on, RefSchema: f.RefNamespace, RefTable: f.RefTable, RefColumns: f.RefColumns, OnDelete: f.OnDelete, OnUpdate: f.OnUpdate,
		})
	}
}
