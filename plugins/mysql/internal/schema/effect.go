package schema

import "errors"

// Statement is a statement of the log and what its meaning depends on.
type Statement struct {
	Text      string // UTF-8
	Database  string // default
	Dialect   Dialect
	Collation string // of the server; the default of databases that no statement made
}

// Class is what a statement does.
type Class uint8

// The classes. Rows: it changes rows, and the log does not list which.
const (
	Nothing Class = iota // no table is touched
	Definition
	Rows
	TruncateTable
	NotUnderstood
)

// Change is what a statement did to one table.
type Change struct {
	Kind    ChangeKind
	Table   Name
	Old     Name // before a rename
	Before  *Table
	After   *Table // nil: dropped, or not known
	Actions []Action
	Body    string // of ALTER TABLE: what follows the table's name
	Err     error  // why After is not known
}

// ChangeKind is what happened to a table.
type ChangeKind uint8

// The kinds of Change.
const (
	Created ChangeKind = iota
	Altered
	Dropped
	Renamed
)

// Effect is what a statement does.
type Effect struct {
	Class   Class
	Changes []Change
	Table   Name   // of TruncateTable
	Tables  []Name // of Rows: those that may have changed; nil = it cannot be told
	Verb    string
	Charset string // database whose default character set changed
	Err     error  // NotUnderstood
}

// IsRefused reports whether err says that a statement was not understood.
func IsRefused(err error) bool { return errors.Is(err, ErrRefused) }
