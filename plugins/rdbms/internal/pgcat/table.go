package pgcat

import (
	"slices"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgtypes"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Table is a table as the catalog describes it.
type Table struct {
	OID       uint32
	Namespace string
	Name      string
	Kind      byte // r, or p where it is partitioned
	Identity  byte // replica identity: d, n, f, i
	Columns   []Column
	Primary   []int // places of the primary key; empty = none
	Replica   []int // places of the index of the replica identity; empty = none
	Uniques   []Unique
	Foreign   []batch.ForeignKey
}

// Column is a column of a Table.
type Column struct {
	Name    string
	Num     int // attnum: stays when the column is renamed
	Type    uint32
	Mod     int32
	NotNull bool
	Auto    bool
	Default string
	// Bytewise says that the server sorts its values as their key bytes are
	// sorted: the collation is C, or the type has none.
	Bytewise  bool
	Collation string // where values that differ in bytes may be equal
	Read      *pgtypes.Column
}

// Unique is a unique index.
type Unique struct {
	Name    string
	Columns []int
}

// Full returns namespace.name.
func (t *Table) Full() string { return t.Namespace + "." + t.Name }

// Quoted returns the name for SQL.
func (t *Table) Quoted() string { return Quote(t.Namespace) + "." + Quote(t.Name) }

// Key returns the places of the columns that identify a row in the log and
// whether they are the primary key. Empty: nothing does.
func (t *Table) Key() (places []int, primary bool) {
	switch {
	case t.Identity == 'i' && len(t.Replica) > 0:
		return t.Replica, slices.Equal(t.Replica, t.Primary)
	case len(t.Primary) > 0:
		return t.Primary, true
	}
	for _, u := range t.Uniques {
		if !slices.ContainsFunc(u.Columns, func(c int) bool { return !t.Columns[c].NotNull }) {
			return u.Columns, false
		}
	}
	return nil, false
}

// Identified reports whether the log identifies the rows that updates and deletes
// concern: without it the server refuses such statements on a published table.
func (t *Table) Identified() bool {
	switch t.Identity {
	case 'f':
		return true
	case 'i':
		return len(t.Replica) > 0
	case 'd':
		return len(t.Primary) > 0
	}
	return false
}

// Schema returns the layout of the table's rows.
func (t *Table) Schema(id uint32, version uint64, source string) *batch.Schema {
	s := &batch.Schema{ID: id, Version: version, Source: source, Namespace: t.Namespace, Table: t.Name, ForeignKeys: t.Foreign}
	for i := range t.Columns {
		s.Columns = append(s.Columns, t.Columns[i].Batch())
	}
	s.Key, s.PrimaryKey = t.Key()
	for _, u := range t.Uniques {
		if !slices.Equal(u.Columns, s.Key) {
			s.Uniques = append(s.Uniques, batch.Index(u))
		}
	}
	for _, k := range s.Key {
		s.Columns[k].Flags &^= batch.Nullable
	}
	return s
}

// Batch returns the column as a schema has it.
func (c *Column) Batch() batch.Column {
	b := c.Read.Batch()
	b.Name, b.Default = c.Name, c.Default
	if c.Collation != "" {
		b.Collation = c.Collation
	}
	if !c.NotNull {
		b.Flags |= batch.Nullable
	}
	if c.Auto {
		b.Flags |= batch.AutoIncrement
	}
	return b
}
