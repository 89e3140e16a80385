package mapping

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Rule says what happens to the tables that From matches. Empty fields change
// nothing.
type Rule struct {
	From    string            // "schema.table" with * and ? as in a shell; "" = every table
	To      string            // new name; {schema} and {table} stand for the old ones
	Include []string          // columns to keep; empty = all
	Exclude []string          // columns to leave out
	Rename  map[string]string // columns, old to new
	Filter  string            // expression over the columns, see README.md
	Set     map[string]string // constant text columns to add
}

// Naming says how tables are called where no rule has a To.
type Naming uint8

// The namings. Flat targets have no schemas: a table is called by its own name
// where the task reads one schema, and schema.table otherwise.
const (
	SameNames Naming = iota
	FlatOneSchema
	FlatManySchemas
)

type rule struct {
	Rule
	program *vm.Program
	columns []string // that the filter reads
}

func compile(r Rule) (*rule, error) {
	out := &rule{Rule: r}
	if r.From != "" {
		if _, err := path.Match(r.From, ""); err != nil {
			return nil, fmt.Errorf("table pattern %q: %w", r.From, err)
		}
	}
	if len(r.Include) > 0 && len(r.Exclude) > 0 {
		return nil, fmt.Errorf("columns of %q: include and exclude are given, expected one of them", r.From)
	}
	if r.Filter == "" {
		return out, nil
	}
	p, err := expr.Compile(r.Filter, expr.AllowUndefinedVariables(), expr.AsBool())
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", r.Filter, err)
	}
	out.program = p
	node := p.Node()
	v := &names{}
	walk(&node, v)
	out.columns = v.found
	return out, nil
}

func (r *rule) matches(name string) bool {
	if r.From == "" {
		return true
	}
	ok, _ := path.Match(r.From, name)
	return ok
}

// target returns the output's namespace and table.
func (r *rule) target(s *batch.Schema, naming Naming) (namespace, table string) {
	if r != nil && r.To != "" {
		to := strings.NewReplacer("{schema}", s.Namespace, "{table}", s.Table).Replace(r.To)
		if naming != SameNames {
			return "", to
		}
		if ns, t, ok := strings.Cut(to, "."); ok {
			return ns, t
		}
		return s.Namespace, to
	}
	switch naming {
	case FlatOneSchema:
		return "", s.Table
	case FlatManySchemas:
		return "", s.Name()
	}
	return s.Namespace, s.Table
}

// keep reports whether the column stays.
func (r *rule) keep(name string) bool {
	if r == nil {
		return true
	}
	if len(r.Include) > 0 {
		return slices.Contains(r.Include, name)
	}
	return !slices.Contains(r.Exclude, name)
}
