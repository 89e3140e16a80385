package sqlite

import (
	"fmt"
	"slices"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// alter runs a typed schema change inside the fenced transaction, so that it
// takes effect with the position that follows it or not at all. What is there
// already counts as done.
func (t *tx) alter(d *batch.Change) error {
	if d == nil {
		return sdk.Faultf(sdk.CodeInternal, "schema change without a body")
	}
	name := tableName(d.Namespace, d.Table)
	switch t.w.cfg.DDL {
	case Ignore:
		return nil
	case Stop:
		return sdk.Faultf(sdk.CodeRefused, "schema change of table %s, and ddl is stop: %s", name, d.Statement).
			Suggest("change the target by hand and set ddl: ignore, or set ddl: apply")
	}
	t.altered = true
	var old *batch.Column // as it was last written, where that is known
	for s, p := range t.w.plans {
		if s.Name() == name && d.Column != nil {
			for i := range s.Columns {
				if c := &s.Columns[i]; fold(c.Name) == fold(d.Column.Name) || d.OldName != "" && fold(c.Name) == fold(d.OldName) {
					old = c
				}
			}
		}
		p.close()
		delete(t.w.plans, s)
	}
	if err := t.alterTable(name, d, old); err != nil {
		return fmt.Errorf("schema change of table %s (%s): %w", name, d.Statement, err)
	}
	return nil
}

func tableName(namespace, table string) string {
	s := batch.Schema{Namespace: namespace, Table: table}
	return s.Name()
}

func (t *tx) alterTable(name string, d *batch.Change, old *batch.Column) error {
	switch d.Kind {
	case batch.DDLOther:
		if d.Schema != nil {
			// Indexes, comments, the engine: rows are what they were. A layout that the
			// target does not hold is said when rows come.
			return nil
		}
		return sdk.Faultf(sdk.CodeRefused, "the statement is not one that can be translated").
			Suggest("make the change in the target by hand, then run once with ddl: ignore")
	case batch.DDLRenameTable:
		return t.renameTable(tableName(d.OldTable()), name, d)
	}
	if err := checkName("table", name); err != nil {
		return err
	}
	have, err := describe(t.c, name)
	if err != nil {
		return err
	}
	switch d.Kind {
	case batch.DDLDropTable:
		if have == nil {
			return nil
		}
		return t.c.run("DROP TABLE " + quote(have.name))
	case batch.DDLCreateTable:
		if have != nil || d.Schema == nil || len(d.Schema.Key) == 0 && t.w.cfg.Keyless == Refuse {
			return nil // what is wrong with it is said when rows come
		}
		if t.w.cfg.Create != Auto {
			return nil
		}
		return t.c.run(createText(d.Schema, name))
	}
	if have == nil {
		return nil // it is created with the layout of its first row
	}
	switch d.Kind {
	case batch.DDLAddColumn:
		return t.addColumn(have, d)
	case batch.DDLDropColumn:
		if d.Column == nil {
			return sdk.Faultf(sdk.CodeInternal, "drop of a column without its name")
		}
		if _, ok := have.byName[fold(d.Column.Name)]; !ok {
			return nil
		}
		return t.c.run("ALTER TABLE " + quote(have.name) + " DROP COLUMN " + quote(d.Column.Name))
	case batch.DDLRenameColumn:
		return t.renameColumn(have, d)
	case batch.DDLChangeColumn:
		return t.changeColumn(have, d, old)
	case batch.DDLAddIndex, batch.DDLDropIndex:
		return t.keyIndex(have, d)
	}
	return sdk.Faultf(sdk.CodeInternal, "schema change of unknown kind %d", d.Kind)
}

func (t *tx) renameTable(from, to string, d *batch.Change) error {
	if err := checkName("table", to); err != nil {
		return err
	}
	old, err := describe(t.c, from)
	if err != nil || old == nil {
		return err
	}
	taken, err := describe(t.c, to)
	if err != nil {
		return err
	}
	if taken != nil && fold(from) != fold(to) {
		return sdk.Faultf(sdk.CodeSchemaMismatch, "tables %s and %s are both in the target: %s", from, to, d.Statement).
			Suggest("drop or rename the one that does not come from the source")
	}
	if taken != nil {
		// SQLite finds the table itself in the way of its name in other letters.
		tmp := to + "_datalink_new"
		if err := t.c.run("ALTER TABLE " + quote(old.name) + " RENAME TO " + quote(tmp)); err != nil {
			return err
		}
		old.name = tmp
	}
	return t.c.run("ALTER TABLE " + quote(old.name) + " RENAME TO " + quote(to))
}

// addColumn adds a column and gives the rows that are there what the source
// gave them: the default, or the zero of the type where NULL is not allowed.
func (t *tx) addColumn(have *table, d *batch.Change) error {
	if d.Column == nil {
		return sdk.Faultf(sdk.CodeInternal, "new column without its layout")
	}
	if err := checkName("column of "+have.name, d.Column.Name); err != nil {
		return err
	}
	if _, ok := have.byName[fold(d.Column.Name)]; ok {
		return nil
	}
	rows, err := t.c.query(bg, "SELECT EXISTS (SELECT 1 FROM "+quote(have.name)+")")
	if err != nil {
		return err
	}
	q := "ALTER TABLE " + quote(have.name) + " ADD COLUMN " + columnText(d.Column)
	if number(rows[0][0]) != 0 {
		if d.Column.Flags&(batch.Generated|batch.Virtual) != 0 {
			return sdk.Faultf(sdk.CodeRefused, "new column %s is computed by the source: its values in the rows that are there only the source knows", d.Column.Name).
				Suggest("make the change in the target by hand, fill the column, then run once with ddl: ignore")
		}
		v, err := defaultText(d.Column)
		if err != nil {
			return err
		}
		if v != "NULL" {
			q += " DEFAULT " + v
		}
	}
	return t.c.run(q)
}

func (t *tx) renameColumn(have *table, d *batch.Change) error {
	if d.Column == nil || d.OldName == "" {
		return sdk.Faultf(sdk.CodeInternal, "renaming of a column without its names")
	}
	if err := checkName("column of "+have.name, d.Column.Name); err != nil {
		return err
	}
	if _, ok := have.byName[fold(d.OldName)]; !ok {
		return nil
	}
	return t.c.run("ALTER TABLE " + quote(have.name) + " RENAME COLUMN " + quote(d.OldName) + " TO " + quote(d.Column.Name))
}

// keyIndex makes the unique index by which rows are found from now on, where the
// source has got a key that the target lacks. Other indexes stay at the source.
func (t *tx) keyIndex(have *table, d *batch.Change) error {
	s := d.Schema
	if s == nil || len(s.Key) == 0 || have.hasKey(s) {
		return nil
	}
	for _, k := range s.Key {
		if _, ok := have.byName[fold(s.Columns[k].Name)]; !ok {
			return nil
		}
	}
	name := have.name + "_datalink_key"
	for slices.ContainsFunc(have.uniques, func(u unique) bool { return fold(u.name) == fold(name) }) {
		name += "_"
	}
	return t.c.run("CREATE UNIQUE INDEX " + quote(name) + " ON " + quote(have.name) + " (" + list(keyNames(s)) + ")")
}
