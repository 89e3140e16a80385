package schema

// History is the layouts of all tables at one place of the log.
type History struct {
	tables map[[2]string]*Table
	gen    uint64
}

// NewHistory returns a history that knows no table.
func NewHistory() *History { return &History{tables: map[[2]string]*Table{}} }

// Generation changes whenever a layout does.
func (h *History) Generation() uint64 { return h.gen }

// Get returns the layout of a table, or nil where it is not known.
func (h *History) Get(database, table string) *Table { return h.tables[[2]string{database, table}] }

// Unknown says why a table is not known, where a statement made it so.
func (h *History) Unknown(database, table string) error { return nil }
