package reference

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Database is a server with transactions, in memory. It is safe for concurrent
// use.
type Database struct {
	// Hook is called before each step of a writer ("claim", "begin", "fence",
	// "apply", "commit", "settle") and after a commit ("committed"); an error of
	// it is the step's. At "commit" and "committed" it may be ErrCommitUnknown,
	// which then is without and with effect. Nil = none.
	Hook func(step string, lanes []int32) error
	// Shuffle orders the changes of a segment; nil = as they come.
	Shuffle *rand.Rand
	// FenceOff lets every writer write, whatever claimed the target since.
	FenceOff bool

	mu       sync.Mutex
	tables   map[string]*table
	progress map[string]*progress // by task and writer
	locks    map[string]*tx
	ddl      []string
	commits  int
	refused  int
	history  []Committed
}

// Committed is one step of a lane's progress, in order of commit.
type Committed struct {
	Lane     int32
	BatchNo  uint64
	Position sdk.Position
}

type table struct {
	name    string
	columns []string
	key     []int
	uniques []unique
	fks     []foreign
	rows    map[string]*row // by key, keyed tables
	list    []*row          // keyless tables
}

type unique struct {
	name    string
	columns []int
}

type foreign struct {
	columns    []int
	table      string
	refColumns []string
}

// cell is one value, by its encoded bytes.
type cell struct {
	null bool
	data string
}

type row struct {
	key   string
	cells []cell
}

// NewDatabase returns an empty Database.
func NewDatabase() *Database {
	return &Database{tables: map[string]*table{}, progress: map[string]*progress{}, locks: map[string]*tx{}}
}

// Define creates a table with the columns, keys and ties of s. Tables that are
// not defined are created with those of the first schema that is prepared.
func (d *Database) Define(s *batch.Schema) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.define(s)
}

func (d *Database) define(s *batch.Schema) *table {
	t := d.tables[s.Name()]
	if t == nil {
		t = &table{name: s.Name(), rows: map[string]*row{}, key: s.Key}
		for _, u := range s.Uniques {
			t.uniques = append(t.uniques, unique{u.Name, u.Columns})
		}
		for _, f := range s.ForeignKeys {
			ref := f.RefTable
			if f.RefSchema != "" {
				ref = f.RefSchema + "." + ref
			} else if s.Namespace != "" {
				ref = s.Namespace + "." + ref
			}
			t.fks = append(t.fks, foreign{f.Columns, ref, f.RefColumns})
		}
		d.tables[s.Name()] = t
	}
	for i := range s.Columns {
		if !slices.Contains(t.columns, s.Columns[i].Name) {
			t.columns = append(t.columns, s.Columns[i].Name)
		}
	}
	return t
}

// referenced reports whether rows of other tables refer to t.
func (d *Database) referenced(t *table) bool {
	for _, o := range d.tables {
		for _, f := range o.fks {
			if f.table == t.name {
				return true
			}
		}
	}
	return false
}

// Rows returns the rows of a table as text, sorted: "name=value" with the
// encoded bytes in hex.
func (d *Database) Rows(name string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tables[name]
	if t == nil {
		return nil
	}
	var out []string
	for _, r := range t.rows {
		out = append(out, t.text(r))
	}
	for _, r := range t.list {
		out = append(out, t.text(r))
	}
	slices.Sort(out)
	return out
}

func (t *table) text(r *row) string {
	var b strings.Builder
	for i, c := range r.cells {
		if i > 0 {
			b.WriteByte(' ')
		}
		if c.null {
			fmt.Fprintf(&b, "%s=NULL", t.columns[i])
		} else {
			fmt.Fprintf(&b, "%s=%x", t.columns[i], c.data)
		}
	}
	return b.String()
}

// Commits returns how many target transactions were committed.
func (d *Database) Commits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commits
}

// Refused returns how many writes a fence has refused.
func (d *Database) Refused() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

// History returns the progress that was committed, in order.
func (d *Database) History() []Committed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.history)
}

// Statements returns the schema changes that were made.
func (d *Database) Statements() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ddl)
}

// State is a copy of a Database's contents.
type State struct {
	tables   map[string]*table
	progress map[string]*progress
}

// Copy returns a copy of what is committed.
func (d *Database) Copy() *State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return copyState(d.tables, d.progress)
}

// Restore puts a copy back: the fail-over to a replica that lags. Open
// transactions are lost.
func (d *Database) Restore(s *State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := copyState(s.tables, s.progress)
	d.tables, d.progress = c.tables, c.progress
	for _, t := range d.locks {
		t.done = true
	}
	clear(d.locks)
}

func copyState(tables map[string]*table, prog map[string]*progress) *State {
	s := &State{tables: map[string]*table{}, progress: map[string]*progress{}}
	for n, t := range tables {
		c := *t
		c.columns = slices.Clone(t.columns)
		c.rows = maps.Clone(t.rows) // rows themselves are never changed in place
		c.list = slices.Clone(t.list)
		s.tables[n] = &c
	}
	for n, p := range prog {
		s.progress[n] = p.clone()
	}
	return s
}

func (d *Database) hook(step string, lanes []int32) error {
	if d.Hook == nil {
		return nil
	}
	return d.Hook(step, lanes)
}

func (t *table) value(r *row, columns []int) (string, bool) {
	var b bytes.Buffer
	for _, c := range columns {
		if c >= len(r.cells) || r.cells[c].null {
			return "", false
		}
		fmt.Fprintf(&b, "%d:%s", len(r.cells[c].data), r.cells[c].data)
	}
	return b.String(), true
}
