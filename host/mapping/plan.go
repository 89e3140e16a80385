package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// plan is what to do with the rows of one schema.
type plan struct {
	rule   *rule
	in     *batch.Schema
	out    *batch.Schema
	keep   []int    // columns of in that stay, in order
	added  []string // values of the columns that follow
	whole  bool     // rows are copied as bytes
	filter []int    // columns of in that the filter reads
}

func newPlan(r *rule, naming Naming, s *batch.Schema) (*plan, error) {
	p := &plan{rule: r, in: s}
	out := s.Clone()
	out.Namespace, out.Table = r.target(s, naming)
	place := make([]int, len(s.Columns))
	out.Columns = nil
	for i, c := range s.Columns {
		place[i] = -1
		if !r.keep(c.Name) {
			continue
		}
		place[i] = len(p.keep)
		p.keep = append(p.keep, i)
		c := s.Columns[i]
		if r != nil && r.Rename[c.Name] != "" {
			c.Name = r.Rename[c.Name]
		}
		out.Columns = append(out.Columns, c)
	}
	if err := p.check(place); err != nil {
		return nil, err
	}
	if r != nil {
		for _, name := range slices.Sorted(maps.Keys(r.Set)) {
			out.Columns = append(out.Columns, batch.Column{Name: name, Type: batch.String, Native: "text"})
			p.added = append(p.added, r.Set[name])
		}
	}
	out.Key, _ = move(s.Key, place)
	out.Uniques = nil
	for _, u := range s.Uniques {
		if cols, ok := move(u.Columns, place); ok {
			out.Uniques = append(out.Uniques, batch.Index{Name: u.Name, Columns: cols})
		}
	}
	out.ForeignKeys = nil
	for _, f := range s.ForeignKeys {
		if cols, ok := move(f.Columns, place); ok {
			f.Columns = cols
			out.ForeignKeys = append(out.ForeignKeys, f)
		}
	}
	p.whole = len(p.keep) == len(s.Columns) && len(p.added) == 0
	p.out = out
	return p, p.unique()
}

func move(cols, place []int) ([]int, bool) {
	out := make([]int, 0, len(cols))
	for _, c := range cols {
		if place[c] < 0 {
			return nil, false
		}
		out = append(out, place[c])
	}
	return out, true
}

// check reports columns that a rule names and the table lacks, and key columns
// that it leaves out.
func (p *plan) check(place []int) error {
	r, s := p.rule, p.in
	if r == nil {
		return nil
	}
	for _, k := range s.Key {
		if place[k] < 0 {
			return sdk.Faultf(sdk.CodeInvalidConfig, "mapping of %s leaves out the key column %s", s.Name(), s.Columns[k].Name).
				Suggest("keep all of the key: %s", columnNames(s, s.Key))
		}
	}
	named := append(slices.Clone(r.Include), r.Exclude...)
	named = append(named, slices.Collect(maps.Keys(r.Rename))...)
	slices.Sort(named)
	for _, n := range named {
		if s.Column(n) < 0 {
			return p.missing("mapping", n)
		}
	}
	for _, n := range r.columns {
		i := s.Column(n)
		if i < 0 {
			return p.missing(fmt.Sprintf("filter %q", r.Filter), n)
		}
		p.filter = append(p.filter, i)
	}
	return nil
}

func (p *plan) missing(what, column string) error {
	all := make([]int, len(p.in.Columns))
	for i := range all {
		all[i] = i
	}
	return sdk.Faultf(sdk.CodeInvalidConfig, "%s names the column %q, table %s has: %s", what, column, p.in.Name(), columnNames(p.in, all))
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
	return !p.whole || p.rule != nil && p.rule.program != nil || p.out.Name() != p.in.Name() || p.out.Namespace != p.in.Namespace ||
		p.rule != nil && len(p.rule.Rename) > 0
}

// emit appends the row as kind, with the images the kind has.
func (p *plan) emit(out *batch.Builder, e *batch.Event, kind batch.Kind, vals *[2][]batch.Value) error {
	if p.whole && kind == e.Kind {
		c := *e
		c.Schema = p.out
		return out.CopyEvent(&c)
	}
	out.SetOrdinal(e.Ordinal)
	if err := out.BeginRow(kind, p.out); err != nil {
		return err
	}
	for side, im := range []batch.Image{e.Before, e.After} {
		if im.IsZero() || side == 1 && kind == batch.Delete || side == 0 && kind == batch.Insert {
			continue
		}
		v, err := im.Values(vals[side])
		if err != nil {
			out.DropRow()
			return err
		}
		vals[side] = v
		out.BeginImage(batch.Side(side))
		for _, i := range p.keep {
			out.PutValue(&v[i])
		}
		for _, text := range p.added {
			out.PutString(text)
		}
		out.EndImage()
	}
	if err := out.EndRow(); err != nil {
		return fmt.Errorf("map a row of %s: %w", p.in.Name(), err)
	}
	return nil
}
