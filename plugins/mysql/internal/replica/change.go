package replica

import (
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
	"github.com/datalink-go/datalink/sdk/batch"
)

// change follows a schema change.
func (r *Replica) change(c *batch.Change) error {
	name := c.Namespace + "." + c.Table
	t := r.Tables[name]
	if t == nil && c.Kind != batch.DDLCreateTable && c.Kind != batch.DDLRenameTable {
		return nil // it is made by its first row
	}
	switch c.Kind {
	case batch.DDLCreateTable:
		if t != nil {
			return fmt.Errorf("create of %s, which is there already: %s", name, c.Statement)
		}
		r.Tables[name] = &Table{Schema: c.Schema, Rows: map[string]*Row{}}
		return nil
	case batch.DDLDropTable:
		delete(r.Tables, name)
		return nil
	case batch.DDLRenameTable:
		ns, old := c.OldTable()
		if t != nil {
			return fmt.Errorf("rename of %s.%s to %s, which is there already: %s", ns, old, name, c.Statement)
		}
		if from := r.Tables[ns+"."+old]; from != nil {
			r.Tables[name] = from
			delete(r.Tables, ns+"."+old)
		}
		return nil
	case batch.DDLAddColumn:
		t.forget(c.Column.Name)
		if c.Column.Flags&batch.Nullable != 0 && c.Column.Flags&(batch.Generated|batch.Virtual|batch.AutoIncrement) == 0 && c.Column.Default == "" {
			for _, row := range t.Rows {
				row.Cells[strings.ToLower(c.Column.Name)] = alltypes.Printed{Null: true}
			}
		}
	case batch.DDLDropColumn:
		t.forget(c.Column.Name)
	case batch.DDLRenameColumn:
		t.rename(c.OldName, c.Column.Name)
	case batch.DDLChangeColumn:
		t.rename(c.OldName, c.Column.Name)
		old := -1
		if t.Schema != nil {
			old = t.Schema.Column(c.OldName)
		}
		if old >= 0 && integer(t.Schema.Columns[old].Type) && integer(c.Column.Type) {
			break // a number stays what it is
		}
		if old < 0 || t.Schema.Columns[old].Type != c.Column.Type || t.Schema.Columns[old].Native != c.Column.Native || t.Schema.Columns[old].Charset != c.Column.Charset {
			t.forget(c.Column.Name)
		}
	case batch.DDLOther:
		return fmt.Errorf("a schema change of %s that is not typed: %s", name, c.Statement)
	}
	if c.Schema != nil {
		t.Schema = c.Schema
		rows := make(map[string]*Row, len(t.Rows))
		for k, row := range t.Rows {
			if len(c.Schema.Key) > 0 {
				k = t.key(row.Cells)
			}
			rows[k] = row
		}
		if len(rows) != len(t.Rows) {
			return fmt.Errorf("after %s rows of %s share keys", c.Statement, name)
		}
		t.Rows = rows
	}
	return nil
}

func integer(t batch.Type) bool { return t >= batch.Int8 && t <= batch.Uint64 }

// forget makes the cells of a column unknown.
func (t *Table) forget(column string) {
	for _, row := range t.Rows {
		delete(row.Cells, strings.ToLower(column))
	}
}

func (t *Table) rename(from, to string) {
	from, to = strings.ToLower(from), strings.ToLower(to)
	if from == to {
		return
	}
	for _, row := range t.Rows {
		// Two columns may change names at once, one step at a time: keep what
		// the name has until its own step comes.
		v, ok := row.Cells[from]
		if !ok {
			continue
		}
		cells := map[string]alltypes.Printed{}
		for k, x := range row.Cells {
			if k != from {
				cells[k] = x
			}
		}
		cells[to] = v
		row.Cells = cells
	}
}
