package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// plan is what to do with the rows of one schema for one target table, or for
// those that a rule makes of it by values of the row.
type plan struct {
	rule   *rule
	in     *batch.Schema
	out    *batch.Schema
	place  []int    // of each column of in within out, -1 = left out
	keep   []int    // columns of in that stay, in order
	first  []*added // added columns before those of in: the key's
	last   []*added // and after them
	texts  map[*added]string
	whole  bool  // rows are copied as bytes
	filter []int // columns of in that the filter reads
	reads  map[*added][]int
	// shared: other tables, or other rows of this one, go elsewhere or come from
	// there, so that what concerns the whole table cannot be passed on.
	shared bool
	routes map[string]*batch.Schema // by target name, where rows decide
}

func newPlan(r *rule, naming Naming, s *batch.Schema) (*plan, error) {
	p := &plan{rule: r, in: s, texts: map[*added]string{}, reads: map[*added][]int{}}
	out := s.Clone()
	var err error
	if out.Namespace, out.Table, err = r.target(s, naming, nil); err != nil {
		return nil, err
	}
	if r != nil {
		p.shared = r.sharing()
		if r.to.byRow() {
			p.routes = map[string]*batch.Schema{}
		}
		if err := p.add(); err != nil {
			return nil, err
		}
	}
	out.Columns = nil
	for _, a := range p.first {
		out.Columns = append(out.Columns, a.layout)
	}
	p.place = make([]int, len(s.Columns))
	for i, c := range s.Columns {
		p.place[i] = -1
		if !r.keep(c.Name) {
			continue
		}
		p.place[i] = len(out.Columns)
		p.keep = append(p.keep, i)
		c.Name = r.column(c.Name)
		out.Columns = append(out.Columns, c)
	}
	for _, a := range p.last {
		out.Columns = append(out.Columns, a.layout)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.constraints(out)
	p.whole = len(p.keep) == len(s.Columns) && len(p.first)+len(p.last) == 0 && p.routes == nil
	p.out = out
	return p, p.unique()
}

// add resolves the columns that the rule adds.
func (p *plan) add() error {
	captures, _ := p.rule.match(p.in.Name())
	for _, a := range p.rule.added {
		if a.Key {
			p.first = append(p.first, a)
		} else {
			p.last = append(p.last, a)
		}
		if a.value != nil {
			text, err := a.value.fill(p.in, captures, nil)
			if err != nil {
				return err
			}
			p.texts[a] = text
			continue
		}
		at, err := p.columns(fmt.Sprintf("column %s, expr %q,", a.name, a.Expr), a.columns)
		if err != nil {
			return err
		}
		p.reads[a] = at
	}
	return nil
}

// constraints moves key, unique and foreign keys to where their columns are now.
func (p *plan) constraints(out *batch.Schema) {
	s := p.in
	key, _ := move(s.Key, p.place)
	out.Key = nil
	if len(s.Key) > 0 {
		for i := range p.first {
			out.Key = append(out.Key, i)
		}
		out.Key = append(out.Key, key...)
	}
	out.Uniques, out.ForeignKeys = nil, nil
	if p.shared {
		return // values that are unique in one table may be in two that were merged
	}
	for _, u := range s.Uniques {
		if cols, ok := move(u.Columns, p.place); ok {
			out.Uniques = append(out.Uniques, batch.Index{Name: u.Name, Columns: cols})
		}
	}
	for _, f := range s.ForeignKeys {
		if cols, ok := move(f.Columns, p.place); ok {
			f.Columns = cols
			out.ForeignKeys = append(out.ForeignKeys, f)
		}
	}
}

func move(cols, place []int) ([]int, bool) {
	out := make([]int, 0, len(cols))
	for _, c := range cols {
		if c >= len(place) || place[c] < 0 {
			return nil, false
		}
		out = append(out, place[c])
	}
	return out, true
}

// check reports columns that a rule names and the table lacks, and key columns
// that it leaves out.
func (p *plan) check() error {
	r, s := p.rule, p.in
	if r == nil {
		return nil
	}
	for _, k := range s.Key {
		if p.place[k] < 0 {
			return sdk.Faultf(sdk.CodeInvalidConfig, "mapping of %s leaves out the key column %s", s.Name(), s.Columns[k].Name).
				Suggest("keep all of the key: %s", columnNames(s, s.Key))
		}
	}
	named := append(slices.Clone(r.Include), r.Exclude...)
	named = append(named, slices.Collect(maps.Keys(r.Rename))...)
	slices.Sort(named)
	if _, err := p.columns("mapping", named); err != nil {
		return err
	}
	if r.to != nil {
		if _, err := p.columns(fmt.Sprintf("name %q", r.To), r.to.columns()); err != nil {
			return err
		}
	}
	var err error
	p.filter, err = p.columns(fmt.Sprintf("filter %q", r.Filter), r.columns)
	return err
}

// columns finds the places of columns that something names.
func (p *plan) columns(what string, names []string) ([]int, error) {
	var at []int
	for _, n := range names {
		i := p.in.Column(n)
		if i < 0 {
			all := make([]int, len(p.in.Columns))
			for i := range all {
				all[i] = i
			}
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "%s names the column %q, table %s has: %s", what, n, p.in.Name(), columnNames(p.in, all))
		}
		at = append(at, i)
	}
	return at, nil
}

func (p *plan) unique() error {
	seen := map[string]bool{}
	for _, c := range p.out.Columns {
		if seen[c.Name] {
			return sdk.Faultf(sdk.CodeInvalidConfig, "mapping of %s makes two columns called %q", p.in.Name(), c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

func columnNames(s *batch.Schema, cols []int) string {
	var names []string
	for _, c := range cols {
		names = append(names, s.Columns[c].Name)
	}
	return strings.Join(names, ", ")
}

// changes reports whether the plan does anything.
func (p *plan) changes() bool {
	if !p.whole || p.shared || p.out.Name() != p.in.Name() || p.out.Namespace != p.in.Namespace || p.rule != nil && p.rule.program != nil {
		return true
	}
	for i := range p.in.Columns {
		if p.in.Columns[i].Name != p.out.Columns[i].Name {
			return true
		}
	}
	return false
}
