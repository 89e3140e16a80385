package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// alter runs a typed schema change inside the fenced transaction, so that it
// takes effect with the position that follows it or not at all. What is there
// already counts as done.
func (t *tx) alter(ctx context.Context, d *batch.Change) error {
	if d == nil {
		return sdk.Faultf(sdk.CodeInternal, "schema change without a body")
	}
	name := batch.Schema{Namespace: d.Namespace, Table: d.Table}
	switch t.w.cfg.DDL {
	case target.Ignore:
		return nil
	case target.Stop:
		return sdk.Faultf(sdk.CodeRefused, "schema change of table %s, and ddl is stop: %s", name.Name(), d.Statement).
			Suggest("change the target by hand and set ddl: ignore, or set ddl: apply")
	}
	t.altered = true
	t.w.plans.forget()
	if err := t.alterTable(ctx, d); err != nil {
		var f *sdk.Fault
		if ofRow(err) {
			// A value that is there: no record of the stream is at fault.
			err = sdk.Faultf(sdk.CodeRefused, "%v", err).Suggest("make the change in the target by hand, then run once with ddl: ignore, or drop the table and take a new snapshot of it")
		}
		if errors.As(err, &f) {
			c := *f
			c.Message = fmt.Sprintf("schema change of table %s (%s): %s", name.Name(), d.Statement, f.Message)
			return &c
		}
		return fmt.Errorf("schema change of table %s (%s): %w", name.Name(), d.Statement, err)
	}
	return nil
}

func (t *tx) alterTable(ctx context.Context, d *batch.Change) error {
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
		return t.renameTable(ctx, d)
	}
	if err := checkName("table", d.Table); err != nil {
		return err
	}
	namespace := t.w.namespace(d.Namespace)
	have, err := describe(ctx, t.s, namespace, d.Table)
	if err != nil {
		return err
	}
	switch d.Kind {
	case batch.DDLDropTable:
		if have == nil {
			return nil
		}
		return t.s.run(ctx, "DROP TABLE "+tableName(namespace, have.Name))
	case batch.DDLCreateTable:
		if have != nil || d.Schema == nil || len(d.Schema.Key) == 0 && t.w.cfg.Keyless == target.Refuse || t.w.cfg.Create != target.Auto {
			return nil // what is wrong with it is said when rows come
		}
		return createTable(ctx, t.s, d.Schema, namespace)
	}
	if have == nil {
		return nil // it is created with the layout of its first row
	}
	switch d.Kind {
	case batch.DDLAddColumn:
		return t.addColumn(ctx, have, d)
	case batch.DDLDropColumn:
		if d.Column == nil {
			return sdk.Faultf(sdk.CodeInternal, "drop of a column without its name")
		}
		at := have.Find(newDialect(&batch.Schema{}, have), d.Column.Name)
		if at < 0 {
			return nil
		}
		return t.s.run(ctx, "ALTER TABLE "+tableName(namespace, have.Name)+" DROP COLUMN "+quote(have.Columns[at].Name))
	case batch.DDLRenameColumn:
		return t.renameColumn(ctx, have, d)
	case batch.DDLChangeColumn:
		return t.changeColumn(ctx, have, d)
	case batch.DDLAddIndex, batch.DDLDropIndex:
		return t.keyIndex(ctx, have, d)
	}
	return sdk.Faultf(sdk.CodeInternal, "schema change of unknown kind %d", d.Kind)
}

func (t *tx) renameTable(ctx context.Context, d *batch.Change) error {
	fromSpace, from := d.OldTable()
	fromSpace, space := t.w.namespace(fromSpace), t.w.namespace(d.Namespace)
	if err := checkName("table", d.Table); err != nil {
		return err
	}
	old, err := describe(ctx, t.s, fromSpace, from)
	if err != nil || old == nil {
		return err
	}
	taken, err := describe(ctx, t.s, space, d.Table)
	if err != nil {
		return err
	}
	if taken != nil && taken.oid != old.oid && taken.Name == d.Table {
		return sdk.Faultf(sdk.CodeSchemaMismatch, "tables %s and %s are both in the target", tableName(fromSpace, old.Name), tableName(space, d.Table)).
			Suggest("drop or rename the one that does not come from the source")
	}
	name := old.Name
	if fromSpace != space {
		if err := createNamespace(ctx, t.s, space); err != nil {
			return err
		}
		if err := t.s.run(ctx, "ALTER TABLE "+tableName(fromSpace, name)+" SET SCHEMA "+quote(space)); err != nil {
			return err
		}
	}
	if name == d.Table {
		return nil
	}
	return t.s.run(ctx, "ALTER TABLE "+tableName(space, name)+" RENAME TO "+quote(d.Table))
}

// addColumn adds a column and gives the rows that are there what the source gave
// them: the default, or the zero of the type where NULL is not allowed.
func (t *tx) addColumn(ctx context.Context, have *table, d *batch.Change) error {
	if d.Column == nil {
		return sdk.Faultf(sdk.CodeInternal, "new column without its layout")
	}
	if err := checkName("column of "+have.Name, d.Column.Name); err != nil {
		return err
	}
	dl := newDialect(&batch.Schema{}, have)
	if have.Find(dl, d.Column.Name) >= 0 {
		return nil
	}
	table := tableName(have.Namespace, have.Name)
	rows, err := t.s.query(ctx, "SELECT EXISTS (SELECT 1 FROM "+table+")")
	if err != nil {
		return err
	}
	q := dl.AddColumn(&have.Table, d.Column)
	if rows[0].bool(0) {
		if d.Column.Flags&(batch.Generated|batch.Virtual) != 0 {
			return sdk.Faultf(sdk.CodeRefused, "new column %s is computed by the source: its values in the rows that are there only the source knows", d.Column.Name).
				Suggest("make the change in the target by hand, fill the column, then run once with ddl: ignore")
		}
		v, err := t.w.defaultText(d.Column)
		if err != nil {
			return err
		}
		if v != "NULL" {
			q += " DEFAULT " + v
		}
	}
	return t.s.run(ctx, q)
}

func (t *tx) renameColumn(ctx context.Context, have *table, d *batch.Change) error {
	if d.Column == nil || d.OldName == "" {
		return sdk.Faultf(sdk.CodeInternal, "renaming of a column without its names")
	}
	if err := checkName("column of "+have.Name, d.Column.Name); err != nil {
		return err
	}
	dl := newDialect(&batch.Schema{}, have)
	at := have.Find(dl, d.OldName)
	if at < 0 || have.Columns[at].Name == d.Column.Name {
		return nil
	}
	q := "ALTER TABLE " + tableName(have.Namespace, have.Name) + " RENAME COLUMN " + quote(have.Columns[at].Name) + " TO " + quote(d.Column.Name)
	if err := t.s.run(ctx, q); err != nil {
		return err
	}
	have.Columns[at].Name = d.Column.Name
	return nil
}

// keyIndex makes the unique index by which rows are found from now on, where the
// source has got a key that the target lacks. Other indexes stay at the source.
func (t *tx) keyIndex(ctx context.Context, have *table, d *batch.Change) error {
	s := d.Schema
	if s == nil || len(s.Key) == 0 {
		return nil
	}
	dl := newDialect(s, have)
	var names []string
	var at []int
	for _, k := range s.Key {
		i := have.Find(dl, s.Columns[k].Name)
		if i < 0 {
			return nil
		}
		names, at = append(names, have.Columns[i].Name), append(at, i)
	}
	for i := range have.Uniques {
		if u := &have.Uniques[i]; u.Plain && sameSet(u.Columns, at) {
			return nil
		}
	}
	return t.s.run(ctx, dl.AddKey(&have.Table, names))
}

func sameSet(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	seen := map[int]bool{}
	for _, x := range a {
		seen[x] = true
	}
	for _, x := range b {
		if !seen[x] {
			return false
		}
	}
	return true
}
