package continuous

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
)

// Database holds the tables of a run.
const Database = "continuous"

// column is a column of a table, and values that fit it.
type column struct {
	name   string
	def    string
	values []string
}

// table is a table as the sessions believe it to be: schema changes that are under
// way make some of their statements fail, which is wanted.
type table struct {
	name    string
	keyless bool
	columns []column
}

// catalog is what the sessions know of the tables.
type catalog struct {
	mu     sync.Mutex
	tables []*table
	cases  []alltypes.Case
	next   int

	keyless, retype bool
}

// usable are the cases that can stand in any table.
func usable(s alltypes.Server) []alltypes.Case {
	return slices.DeleteFunc(alltypes.Cases(s), func(c alltypes.Case) bool {
		return c.Unmapped || c.Keys != "" || strings.Contains(c.Type, "NOT NULL") || c.Name == "serial" || c.Name == "double_10_2" || strings.HasPrefix(c.Name, "longtext") || strings.HasPrefix(c.Name, "longblob")
	})
}

func (c *catalog) column(r *rand.Rand) column {
	k := c.cases[r.IntN(len(c.cases))]
	c.next++
	return column{fmt.Sprintf("c%d_%s", c.next, strings.Trim(k.Name, "_")), k.Type, k.Values}
}

func (c *catalog) table(r *rand.Rand) *table {
	c.next++
	t := &table{name: fmt.Sprintf("t%d", c.next), keyless: r.IntN(6) == 0 && c.keyless}
	for range 2 + r.IntN(6) {
		t.columns = append(t.columns, c.column(r))
	}
	return t
}

func (t *table) create() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (id INT NOT NULL", t.name)
	for _, c := range t.columns {
		fmt.Fprintf(&b, ", %s %s", c.name, c.def)
	}
	if !t.keyless {
		b.WriteString(", PRIMARY KEY (id)")
	}
	return b.String() + ")"
}

// pick returns a copy of one of the tables.
func (c *catalog) pick(r *rand.Rand) table {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := *c.tables[r.IntN(len(c.tables))]
	t.columns = slices.Clone(t.columns)
	return t
}

// change changes a table in the catalog after the server did.
func (c *catalog) change(name string, f func(t *table)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tables {
		if t.name == name {
			f(t)
		}
	}
}
