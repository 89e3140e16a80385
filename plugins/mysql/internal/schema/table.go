package schema

import (
	"slices"
	"strings"
)

// Table is the layout of a table at one place of the log.
type Table struct {
	Database    string
	Name        string
	Version     uint64
	Columns     []Column
	Primary     []Part
	Uniques     []Index
	ForeignKeys []ForeignKey
	Engine      string // lower case; "" = the server's default
	Charset     string // default of the table
	Collation   string
	Sequence    bool // a MariaDB sequence: one row, which every write replaces
	versioned   bool
}

// System says which bound of a row's life a column is.
type System uint8

// The bounds.
const (
	NoBound System = iota
	RowStart
	RowEnd
)

// Column is one column of a table.
type Column struct {
	Name       string
	Base       string // type without arguments, lower case: "int", "varchar"
	Native     string // type with arguments and attributes: "int unsigned"
	Length     int    // first argument; -1 = none
	Scale      int    // second argument; -1 = none
	Unsigned   bool
	Charset    string // of text types; "" for others
	Collation  string
	Labels     []string // of enum and set, UTF-8
	NotNull    bool
	Auto       bool
	Generated  bool
	Virtual    bool
	Hidden     bool   // INVISIBLE
	System     System // MariaDB: bounds of a row's life in a system-versioned table
	Functional bool   // made by the server for a functional index; not part of the table
	SRID       uint32
	Default    string // as written; "" = none
}

// Part is a column of a key.
type Part struct {
	Column string
	Prefix int // characters; 0 = all of it
}

// Index is a unique key.
type Index struct {
	Name       string
	Parts      []Part
	Expression bool // over an expression: its columns are not enough to compare
}

// ForeignKey is a reference to another table.
type ForeignKey struct {
	Name        string
	Columns     []string
	RefDatabase string
	RefTable    string
	RefColumns  []string
	OnDelete    string
	OnUpdate    string
}

// Transactional reports whether changes of the table can be rolled back. ok is
// false where its engine is not known to this package.
func (t *Table) Transactional() (yes, ok bool) {
	switch t.Engine {
	case "", "innodb", "rocksdb", "tokudb", "ndb", "ndbcluster", "xpand":
		return true, true
	case "myisam", "aria", "memory", "heap", "archive", "csv", "merge", "mrg_myisam", "blackhole":
		return false, true
	}
	return false, false
}

// Column returns the place of the column with that name, compared as the server
// compares column names, or -1.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
}

func (t *Table) clone() *Table {
	c := *t
	c.Columns = slices.Clone(t.Columns)
	c.Primary = slices.Clone(t.Primary)
	c.Uniques = slices.Clone(t.Uniques)
	c.ForeignKeys = slices.Clone(t.ForeignKeys)
	return &c
}
