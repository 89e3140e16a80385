package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Rule says what happens to the tables that From matches. Empty fields change
// nothing.
type Rule struct {
	From    string            // see Pattern; "" = every table
	To      string            // new name, see template
	Include []string          // columns to keep; empty = all
	Exclude []string          // columns to leave out
	Rename  map[string]string // columns, old to new
	Filter  string            // expression over the columns, see README.md
	Set     map[string]Column // columns to add
	Case    Case              `json:",omitempty"`
}

// Case says how names that a rule does not spell out are written.
type Case string

// The cases.
const (
	KeepCase  Case = ""
	LowerCase Case = "lower"
	UpperCase Case = "upper"
)

func (c Case) apply(name string) string {
	switch c {
	case LowerCase:
		return strings.ToLower(name)
	case UpperCase:
		return strings.ToUpper(name)
	}
	return name
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
	from    *Pattern // nil = every table
	to      *template
	added   []*added
	program *vm.Program
	columns []string // that the filter reads
	shares  bool     // another rule leads to the same table
}

func compile(r Rule) (*rule, error) {
	out := &rule{Rule: r}
	groups := 0
	if r.From != "" {
		p, err := ParsePattern(r.From)
		if err != nil {
			return nil, err
		}
		out.from = p
		if p.re != nil {
			groups = p.re.NumSubexp()
		}
	}
	if r.To != "" {
		t, err := parseTemplate(r.To, groups)
		if err != nil {
			return nil, fmt.Errorf("name %w", err)
		}
		out.to = t
	}
	if len(r.Include) > 0 && len(r.Exclude) > 0 {
		return nil, fmt.Errorf("columns of %q: include and exclude are given, expected one of them", r.From)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Set)) {
		a, err := compileColumn(name, r.Set[name], groups)
		if err != nil {
			return nil, err
		}
		out.added = append(out.added, a)
	}
	if r.Filter == "" {
		return out, nil
	}
	p, err := expr.Compile(r.Filter, expr.AllowUndefinedVariables(), expr.AsBool())
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", r.Filter, err)
	}
	out.program, out.columns = p, identifiers(p)
	return out, nil
}

// match returns what the pattern captured.
func (r *rule) match(name string) ([]string, bool) {
	if r.from == nil {
		return []string{name}, true
	}
	return r.from.Match(name)
}

// merges reports whether rows of several tables end up in one.
func (r *rule) merges() bool {
	return r != nil && r.to != nil && (r.from == nil || !r.from.One()) && !r.to.names
}

// sharing reports whether target tables of the rule hold rows of other tables, or
// only some of this one.
func (r *rule) sharing() bool {
	for _, a := range r.added {
		if a.Key {
			return true
		}
	}
	return r.merges() || r.shares || r.to.byRow()
}

// target returns the output's namespace and table. Value gives the parts of the
// name that depend on a row; without it they stay as places.
func (r *rule) target(s *batch.Schema, naming Naming, value func(*part) (string, error)) (namespace, table string, err error) {
	if r != nil && r.to != nil {
		captures, _ := r.match(s.Name())
		to, err := r.to.fill(s, captures, value)
		if err != nil {
			return "", "", err
		}
		if naming != SameNames {
			return "", to, nil
		}
		if ns, t, ok := strings.Cut(to, "."); ok {
			return ns, t, nil
		}
		return s.Namespace, to, nil
	}
	c := KeepCase
	if r != nil {
		c = r.Case
	}
	switch naming {
	case FlatOneSchema:
		return "", c.apply(s.Table), nil
	case FlatManySchemas:
		return "", c.apply(s.Name()), nil
	}
	return c.apply(s.Namespace), c.apply(s.Table), nil
}

// column returns the new name of a column.
func (r *rule) column(name string) string {
	if r == nil {
		return name
	}
	if n := r.Rename[name]; n != "" {
		return n
	}
	return r.Case.apply(name)
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
