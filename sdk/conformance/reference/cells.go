package reference

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Cells is a store of versioned cells and tombstones, as a column store has: of
// each cell the greatest version counts, whenever it came.
type Cells struct {
	mu      sync.Mutex
	tables  map[string]map[string]*cellRow
	columns map[string][]string
	owner   sdk.Execution
}

type cellRow struct {
	gone  uint64 // version of the tombstone of the row
	cells map[string]versioned
}

type versioned struct {
	version uint64
	cell
}

// NewCells returns an empty store.
func NewCells() *Cells {
	return &Cells{tables: map[string]map[string]*cellRow{}, columns: map[string][]string{}}
}

// Versioned is a writer on Cells.
type Versioned struct{ store *Cells }

var _ sdk.VersionedWriter = (*Versioned)(nil)

// NewVersioned returns a writer on the store.
func NewVersioned(c *Cells) *Versioned { return &Versioned{c} }

// Check finds nothing.
func (w *Versioned) Check(context.Context) ([]sdk.Finding, error) { return nil, nil }

// Close does nothing.
func (w *Versioned) Close(context.Context) error { return nil }

// Claim remembers who owns the store.
func (w *Versioned) Claim(_ context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	c := w.store
	c.mu.Lock()
	defer c.mu.Unlock()
	if ex.Epoch < c.owner.Epoch || ex.Epoch == c.owner.Epoch && ex.ID != c.owner.ID {
		return sdk.Claimed{}, sdk.ErrFenced
	}
	c.owner = ex
	return sdk.Claimed{}, nil
}

// Prepare creates the table.
func (w *Versioned) Prepare(_ context.Context, s *batch.Schema) (sdk.Constraints, error) {
	c := w.store
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables[s.Name()] == nil {
		c.tables[s.Name()] = map[string]*cellRow{}
	}
	c.columns[s.Name()] = nil
	for i := range s.Columns {
		c.columns[s.Name()] = append(c.columns[s.Name()], s.Columns[i].Name)
	}
	return sdk.Constraints{}, nil
}

// ApplyAt writes cells and tombstones at the versions of the changes.
func (w *Versioned) ApplyAt(_ context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	c := w.store
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seg := range ch.Segments {
		for i := range seg {
			x := &seg[i]
			if x.Version == 0 {
				return nil, sdk.Faultf(sdk.CodeInternal, "%s without a version", x.Op)
			}
			if err := c.change(x); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

func (c *Cells) change(x *sdk.Change) error {
	t := c.tables[x.Schema.Name()]
	switch x.Op {
	case sdk.Truncate:
		for _, r := range t {
			r.gone = max(r.gone, x.Version)
		}
		return nil
	case sdk.Upsert, sdk.Patch, sdk.Remove:
	default:
		return sdk.Faultf(sdk.CodeUnimplemented, "%s of a row of %s", x.Op, x.Schema.Name())
	}
	r := t[string(x.Key)]
	if r == nil {
		r = &cellRow{cells: map[string]versioned{}}
		t[string(x.Key)] = r
	}
	if x.Op == sdk.Remove {
		r.gone = max(r.gone, x.Version)
		return nil
	}
	cols, err := x.After.Columns(nil)
	if err != nil {
		return err
	}
	for i := range cols {
		name := x.Schema.Columns[i].Name
		v := versioned{version: x.Version}
		switch cols[i].State {
		case batch.Null:
			v.null = true
		case batch.Present, batch.Raw:
			v.data = string(cols[i].Bytes)
		default:
			continue
		}
		if x.Version >= r.cells[name].version {
			r.cells[name] = v
		}
	}
	return nil
}

// Cells returns the rows of a table that are there, each with its columns in the
// order of the schema; nil cells are NULL.
func (c *Cells) Cells(s *batch.Schema) [][]*string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out [][]*string
	for _, r := range c.tables[s.Name()] {
		row := make([]*string, len(s.Columns))
		live := false
		for i := range s.Columns {
			v, ok := r.cells[s.Columns[i].Name]
			if ok && v.version > r.gone {
				live = true
				if !v.null {
					row[i] = &v.data
				}
			}
		}
		if live {
			out = append(out, row)
		}
	}
	return out
}

// Rows is a store of plain rows: what comes last counts.
type Rows struct {
	mu     sync.Mutex
	tables map[string]map[string][]cell
}

// NewRows returns an empty store.
func NewRows() *Rows { return &Rows{tables: map[string]map[string][]cell{}} }

// Idempotent is a writer on Rows.
type Idempotent struct {
	store *Rows
	// Now is the clock that deadlines are kept by; nil = time.Now.
	Now func() time.Time
}

var _ sdk.IdempotentWriter = (*Idempotent)(nil)

// NewIdempotent returns a writer on the store.
func NewIdempotent(r *Rows) *Idempotent { return &Idempotent{store: r} }

// Check finds nothing.
func (w *Idempotent) Check(context.Context) ([]sdk.Finding, error) { return nil, nil }

// Close does nothing.
func (w *Idempotent) Close(context.Context) error { return nil }

// Claim stores nothing.
func (w *Idempotent) Claim(context.Context, sdk.Execution) (sdk.Claimed, error) {
	return sdk.Claimed{}, nil
}

// Prepare creates the table.
func (w *Idempotent) Prepare(_ context.Context, s *batch.Schema) (sdk.Constraints, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if w.store.tables[s.Name()] == nil {
		w.store.tables[s.Name()] = map[string][]cell{}
	}
	return sdk.Constraints{}, nil
}

// Apply writes the changes, unless the deadline is over.
func (w *Idempotent) Apply(ctx context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	now := time.Now
	if w.Now != nil {
		now = w.Now
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for _, seg := range ch.Segments {
		if !ch.Deadline.IsZero() && !now().Before(ch.Deadline) {
			return nil, sdk.Faultf(sdk.CodeDeadline, "apply: the deadline is over")
		}
		for i := range seg {
			if err := w.store.change(&seg[i]); err != nil {
				return nil, err
			}
		}
	}
	return nil, ctx.Err()
}

func (s *Rows) change(x *sdk.Change) error {
	t := s.tables[x.Schema.Name()]
	key := string(x.Key)
	var old []cell
	switch x.Op {
	case sdk.Truncate:
		clear(t)
		return nil
	case sdk.Remove:
		delete(t, key)
		return nil
	case sdk.Patch, sdk.Upsert:
		old = t[key]
	case sdk.Rekey:
		if old = t[string(x.OldKey)]; old == nil {
			old = t[key]
		}
		delete(t, string(x.OldKey))
	default:
		return sdk.Faultf(sdk.CodeUnimplemented, "%s of a row of %s", x.Op, x.Schema.Name())
	}
	cols, err := x.After.Columns(nil)
	if err != nil {
		return err
	}
	r := make([]cell, len(cols))
	for i := range r {
		r[i].null = true
	}
	copy(r, old)
	for i := range cols {
		switch cols[i].State {
		case batch.Null:
			r[i] = cell{null: true}
		case batch.Present, batch.Raw:
			r[i] = cell{data: string(cols[i].Bytes)}
		}
	}
	t[key] = r
	return nil
}

// Cells returns the rows of a table, each with its columns in the order of the
// schema; nil cells are NULL.
func (s *Rows) Cells(sc *batch.Schema) [][]*string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out [][]*string
	for _, r := range s.tables[sc.Name()] {
		out = append(out, pointers(r))
	}
	return out
}

// Cells returns the rows of a table, each with its columns in the order of the
// schema; nil cells are NULL.
func (d *Database) Cells(s *batch.Schema) [][]*string {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tables[s.Name()]
	if t == nil {
		return nil
	}
	var out [][]*string
	for _, r := range t.rows {
		out = append(out, pointers(r.cells))
	}
	for _, r := range t.list {
		out = append(out, pointers(r.cells))
	}
	slices.SortFunc(out, func(a, b []*string) int {
		for i := range min(len(a), len(b)) {
			if a[i] != nil && b[i] != nil && *a[i] != *b[i] {
				return strings.Compare(*a[i], *b[i])
			}
		}
		return 0
	})
	return out
}

func pointers(cells []cell) []*string {
	out := make([]*string, len(cells))
	for i := range cells {
		if !cells[i].null {
			out[i] = &cells[i].data
		}
	}
	return out
}
