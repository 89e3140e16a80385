package config

import "github.com/datalink-go/datalink/host/mapping"

// APIVersion is what a task file of this version begins with.
const APIVersion = "datalink/v1"

// Task is one task as its file has it.
type Task struct {
	Place
	Name       string
	Group      string
	Reader     Connector
	Transforms []Transform
	Writers    []Writer
	Spec       string // text of the document, secrets not resolved
}

// Ref names a plugin, at any version or at one.
type Ref struct {
	Place
	Name    string
	Version string // "" = any
}

// String returns name or name@version.
func (r Ref) String() string {
	if r.Version == "" {
		return r.Name
	}
	return r.Name + "@" + r.Version
}

// Connector is a plugin and its options.
type Connector struct {
	Plugin Ref
	Config Block
}

// Transform is one step between reader and writers.
type Transform struct {
	Connector
	Name   string         // unique in the task, for messages and metrics
	Tables Patterns       // which it concerns; empty = all
	Rules  []mapping.Rule // of a built-in one; nil = a plugin
}

// Writer is one target.
type Writer struct {
	Connector
	Name       string
	Mappings   []mapping.Rule
	DeadLetter bool // onError: dead-letter
}

// The built-in transforms.
const (
	Filter  = "filter"
	Rename  = "rename"
	Columns = "columns"
)

// Sources returns the patterns of the reader's option tables, nil when it has
// none.
func (t *Task) Sources() Patterns {
	k := t.Reader.Config.root.get("tables")
	if k == nil {
		return nil
	}
	var p Patterns
	switch k.value.kind {
	case textKind:
		p = Patterns{k.value.text}
	case listKind:
		for _, e := range k.value.list {
			if e.kind == textKind {
				p = append(p, e.text)
			}
		}
	}
	return p
}

// Naming says how tables are called at a writer that knows no schemas: by their
// own names when the reader's patterns name one schema.
func (t *Task) Naming(flat bool) mapping.Naming {
	switch {
	case !flat:
		return mapping.SameNames
	case t.Sources().oneSchema():
		return mapping.FlatOneSchema
	}
	return mapping.FlatManySchemas
}
