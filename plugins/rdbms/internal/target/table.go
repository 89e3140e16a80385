package target

import (
	"slices"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Table is a table of the target as its dialect found it.
type Table struct {
	Namespace   string // database or schema, as the target writes it
	Name        string
	Columns     []Column
	Uniques     []Unique // the primary key first, where there is one
	ForeignKeys []ForeignKey
	Referenced  bool     // foreign keys of other tables refer to it
	Faults      []Fault  // what makes it unfit whatever the rows are: a view, the engine, triggers
	Options     []string // of the dialect, for its own use
}

// Fault is something wrong with a table and the statement that mends it.
type Fault struct{ Found, Mend string }

// Column is a column of the target.
type Column struct {
	Name      string
	Type      string // as declared
	Charset   string
	Collation string
	Nullable  bool
	HasValue  bool // has a default or counts by itself
	Generated bool // computed by the target
}

// Unique is a unique key of the target, its columns by place.
type Unique struct {
	Name    string
	Primary bool
	Columns []int
	// Plain is false for expressions, prefixes and partial indexes, which do not
	// compare all rows by their columns.
	Plain bool
	// NullsEqual: two rows with NULL in it meet.
	NullsEqual bool
}

// ForeignKey is a foreign key of the target, its columns by place.
type ForeignKey struct {
	Name                      string
	Columns                   []int
	RefNamespace, RefTable    string
	RefColumns                []string
	OnDelete, OnUpdate, Match string
}

// Names is how a dialect compares and writes names.
type Names interface {
	// Fold brings a column's name to the form in which the target compares it.
	Fold(name string) string
	// Quote writes an identifier so that the target takes it for nothing else.
	Quote(name string) string
}

// Find returns the place of the column, or -1.
func (t *Table) Find(n Names, name string) int {
	name = n.Fold(name)
	return slices.IndexFunc(t.Columns, func(c Column) bool { return n.Fold(c.Name) == name })
}

// Place returns the place of the column in a schema, or -1.
func Place(n Names, s *batch.Schema, name string) int {
	if i := s.Column(name); i >= 0 {
		return i
	}
	name = n.Fold(name)
	return slices.IndexFunc(s.Columns, func(c batch.Column) bool { return n.Fold(c.Name) == name })
}

// KeyNames returns the names of the schema's key.
func KeyNames(s *batch.Schema) []string {
	out := make([]string, len(s.Key))
	for i, k := range s.Key {
		out[i] = s.Columns[k].Name
	}
	return out
}

// List writes quoted names with commas between them.
func List(n Names, names []string) string {
	var b []byte
	for i, name := range names {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, n.Quote(name)...)
	}
	return string(b)
}
