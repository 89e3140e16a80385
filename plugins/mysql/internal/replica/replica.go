package replica

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Replica is the target.
type Replica struct {
	Tables map[string]*Table // by database.table
	Events map[batch.Kind]int
	vals   []batch.Value
}

// Table is a table of the target.
type Table struct {
	Schema *batch.Schema
	Rows   map[string]*Row // by key, or by number
	next   int
}

// Row is a row: its cells by column, in lower case. A cell that is missing is not
// known.
type Row struct{ Cells map[string]alltypes.Printed }

// New returns an empty target.
func New() *Replica {
	return &Replica{Tables: map[string]*Table{}, Events: map[batch.Kind]int{}}
}

// Clone returns a copy: what was applied later can be thrown away with it.
func (r *Replica) Clone() *Replica {
	c := New()
	maps.Copy(c.Events, r.Events)
	for n, t := range r.Tables {
		rows := make(map[string]*Row, len(t.Rows))
		for k, row := range t.Rows {
			rows[k] = &Row{maps.Clone(row.Cells)}
		}
		c.Tables[n] = &Table{t.Schema, rows, t.next}
	}
	return c
}

// Apply follows an event.
func (r *Replica) Apply(e *batch.Event) error {
	r.Events[e.Kind]++
	switch e.Kind {
	case batch.DDL:
		c, err := e.Change()
		if err != nil {
			return err
		}
		return r.change(c)
	case batch.Truncate:
		r.table(e.Schema).Rows = map[string]*Row{}
		return nil
	case batch.Insert, batch.Update, batch.Delete:
		if err := r.row(e); err != nil {
			return fmt.Errorf("%s of %s: %w", e.Kind, e.Schema.Name(), err)
		}
	}
	return nil
}

func (r *Replica) table(s *batch.Schema) *Table {
	t := r.Tables[s.Name()]
	if t == nil {
		t = &Table{Rows: map[string]*Row{}}
		r.Tables[s.Name()] = t
	}
	t.Schema = s
	return t
}

func (r *Replica) row(e *batch.Event) error {
	t := r.table(e.Schema)
	before, err := r.cells(e.Before)
	if err != nil {
		return err
	}
	after, err := r.cells(e.After)
	if err != nil {
		return err
	}
	if e.Kind == batch.Insert {
		key := t.key(after)
		if old := t.Rows[key]; old != nil {
			return fmt.Errorf("the row is there already: %s", show(old.Cells))
		}
		t.Rows[key] = &Row{after}
		return nil
	}
	if len(before) == 0 {
		before = maps.Clone(after) // key columns of an update without a before image
	}
	key, row := t.find(before)
	if row == nil {
		return fmt.Errorf("there is no such row: %s", show(before))
	}
	for c, v := range before {
		if old, ok := row.Cells[c]; ok && old != v && e.Before.Data() != nil {
			return fmt.Errorf("column %s of row %s: the before image has %q, the row had %q", c, show(before), clip(v), clip(old))
		}
	}
	delete(t.Rows, key)
	if e.Kind == batch.Delete {
		return nil
	}
	for c, v := range row.Cells {
		if _, ok := after[c]; !ok {
			after[c] = v
		}
	}
	if len(t.Schema.Key) > 0 {
		if key = t.key(after); t.Rows[key] != nil {
			return fmt.Errorf("the new key is taken: %s", show(after))
		}
	}
	t.Rows[key] = &Row{after}
	return nil
}

// cells are the values of an image that are there.
func (r *Replica) cells(im batch.Image) (map[string]alltypes.Printed, error) {
	out := map[string]alltypes.Printed{}
	if im.IsZero() {
		return out, nil
	}
	var err error
	if r.vals, err = im.Values(r.vals); err != nil {
		return nil, err
	}
	for i := range r.vals {
		v, c := &r.vals[i], &im.Schema().Columns[i]
		if v.State == batch.Absent || v.State == batch.Unchanged {
			continue
		}
		p, err := alltypes.Value(c, v)
		if err != nil {
			return nil, err
		}
		out[strings.ToLower(c.Name)] = p
	}
	return out, nil
}

// key is the key of a row; rows of tables without one are numbered.
func (t *Table) key(cells map[string]alltypes.Printed) string {
	if len(t.Schema.Key) == 0 {
		t.next++
		return fmt.Sprintf("#%09d", t.next)
	}
	var b strings.Builder
	for _, k := range t.Schema.Key {
		v := cells[strings.ToLower(t.Schema.Columns[k].Name)]
		fmt.Fprintf(&b, "%q,", v.Value+v.Stored)
	}
	return b.String()
}

func (t *Table) find(cells map[string]alltypes.Printed) (string, *Row) {
	if len(t.Schema.Key) > 0 {
		k := t.key(cells)
		return k, t.Rows[k]
	}
	// A cell that is not known fits every value, so a row of which all is known goes
	// first: whichever of equal rows is taken, the same rows remain.
	best, unknown := "", 0
	for _, k := range slices.Sorted(maps.Keys(t.Rows)) {
		same, n := true, 0
		for c, v := range cells {
			old, ok := t.Rows[k].Cells[c]
			same = same && (!ok || old == v)
			if !ok {
				n++
			}
		}
		if same && (best == "" || n < unknown) {
			best, unknown = k, n
		}
	}
	if best != "" {
		return best, t.Rows[best]
	}
	return "", nil
}

func show(cells map[string]alltypes.Printed) string {
	var b strings.Builder
	for _, c := range slices.Sorted(maps.Keys(cells)) {
		fmt.Fprintf(&b, "%s=%q ", c, clip(cells[c]))
	}
	return b.String()
}

func clip(p alltypes.Printed) string {
	s := p.Value + p.Stored
	if p.Null {
		s = "NULL"
	}
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return s
}
