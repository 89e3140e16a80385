package mapping

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// ddl renames tables and columns in a schema change as it does in schemas, once
// for each rule of the table.
func (s *Stage) ddl(e *batch.Event) error {
	c, err := e.Change()
	if err != nil {
		return err
	}
	rules := s.match((&batch.Schema{Namespace: c.Namespace, Table: c.Table}).Name())
	for _, r := range rules {
		one := *c
		if c.Column != nil {
			col := *c.Column
			one.Column = &col
		}
		keep, err := s.change(r, &one)
		if err != nil {
			return err
		}
		if !keep {
			continue
		}
		s.out.SetOrdinal(e.Ordinal)
		if err := s.out.Change(&one); err != nil {
			return err
		}
	}
	return nil
}

// change rewrites c for one rule. False: it does not concern the target.
func (s *Stage) change(r *rule, c *batch.Change) (keep bool, err error) {
	if keep, err := r.passes(c); err != nil || !keep {
		return false, err
	}
	from := &batch.Schema{Namespace: c.Namespace, Table: c.Table}
	oldSpace, oldTable := c.OldTable()
	if c.Namespace, c.Table, err = r.target(from, s.naming, nil); err != nil {
		return false, err
	}
	if c.Kind == batch.DDLRenameTable {
		old := &batch.Schema{Namespace: oldSpace, Table: oldTable}
		was := s.match(old.Name())[0]
		if keep, err := was.passes(c); err != nil || !keep {
			return false, err
		}
		ns, t, err := was.target(old, s.naming, nil)
		if err != nil {
			return false, err
		}
		c.SetOldTable(ns, t)
	}
	if r != nil && c.Column != nil {
		if !r.keep(c.Column.Name) {
			return false, nil
		}
		c.Column.Name = r.column(c.Column.Name)
		if c.Kind == batch.DDLRenameColumn {
			c.OldName = r.column(c.OldName)
		}
		if !r.keep(c.After) {
			c.After = ""
		} else if c.After != "" && c.After != "\x00" {
			c.After = r.column(c.After)
		}
	}
	if c.Schema == nil {
		return true, nil
	}
	p, err := newPlan(r, s.naming, c.Schema)
	if err != nil {
		return false, err
	}
	if c.Index != nil {
		ix := *c.Index
		if ix.Columns, keep = move(ix.Columns, p.place); !keep {
			return false, nil // an index over columns that are left out
		}
		c.Index = &ix
	}
	c.Schema = p.out
	return true, nil
}

// passes says whether a change can be made at a table that has rows of others
// too: what adds to it can, and is no news the second time.
func (r *rule) passes(c *batch.Change) (bool, error) {
	if r == nil || !r.sharing() {
		return true, nil
	}
	switch c.Kind {
	case batch.DDLCreateTable, batch.DDLAddColumn, batch.DDLChangeColumn:
		return !r.to.byRow(), nil // tables that rows name are made as rows come
	case batch.DDLAddIndex:
		return false, nil // what is unique in one table may be there twice in all
	}
	return false, sdk.Faultf(sdk.CodeRefused, "%q changes %s.%s, whose rows share target tables with others (%s → %s)",
		c.Statement, c.Namespace, c.Table, r.From, r.To).
		Suggest("make the change at the target by hand, and let the reader pass it with ddl: ignore")
}

func (t *template) byRow() bool { return t != nil && t.rows }
