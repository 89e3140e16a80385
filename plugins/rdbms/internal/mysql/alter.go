package mysql

import (
	"context"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// texts returns the statements that are still to be run for the change: what is
// there already counts as done.
func (a *alteration) texts(ctx context.Context) ([]string, error) {
	d, w := a.d, a.w
	switch d.Kind {
	case batch.DDLOther:
		if d.Schema != nil {
			// Indexes, comments, the engine: rows are what they were. A layout that the
			// target does not hold is said when rows come.
			return nil, nil
		}
		return nil, sdk.Faultf(sdk.CodeRefused, "the statement is not one that can be translated").
			Suggest("make the change in the target by hand, then run once with ddl: ignore")
	case batch.DDLRenameTable:
		return a.rename(ctx)
	}
	database, name := w.place(d.Namespace, d.Table)
	if err := checkName("table", name); err != nil {
		return nil, err
	}
	have, err := w.describe(ctx, a.s, database, name)
	if err != nil {
		return nil, err
	}
	full := tableName(database, name)
	switch d.Kind {
	case batch.DDLDropTable:
		if have == nil {
			return nil, nil
		}
		return []string{"DROP TABLE " + full}, nil
	case batch.DDLCreateTable:
		if have != nil || d.Schema == nil || w.cfg.Create != target.Auto || len(d.Schema.Key) == 0 && w.cfg.Keyless == target.Refuse {
			return nil, nil // what is wrong with it is said when rows come
		}
		var texts []string
		err := w.createDatabase(ctx, a.s, database, func(q string) error { texts = append(texts, q); return nil })
		return append(texts, a.types.create(d.Schema, database, name)), err
	}
	if have == nil {
		return nil, nil // it is created with the layout of its first row
	}
	alter := "ALTER TABLE " + full + " "
	switch d.Kind {
	case batch.DDLAddIndex, batch.DDLDropIndex:
		return a.keys(have, alter), nil
	case batch.DDLAddColumn, batch.DDLDropColumn, batch.DDLRenameColumn, batch.DDLChangeColumn:
	default:
		return nil, sdk.Faultf(sdk.CodeInternal, "schema change of unknown kind %d", d.Kind)
	}
	if d.Column == nil {
		return nil, sdk.Faultf(sdk.CodeInternal, "change of a column without its layout")
	}
	if err := checkName("column of "+name, d.Column.Name); err != nil {
		return nil, err
	}
	at := have.Find(names{}, d.Column.Name)
	switch d.Kind {
	case batch.DDLAddColumn:
		if at >= 0 {
			return nil, nil
		}
		return a.add(ctx, have, alter)
	case batch.DDLDropColumn:
		if at < 0 {
			return nil, nil
		}
		return []string{alter + "DROP COLUMN " + quote(have.Columns[at].Name)}, nil
	}
	return a.change(have, alter, at)
}

func (a *alteration) rename(ctx context.Context) ([]string, error) {
	ns, old := a.d.OldTable()
	fromDB, from := a.w.place(ns, old)
	toDB, to := a.w.place(a.d.Namespace, a.d.Table)
	if err := checkName("table", to); err != nil {
		return nil, err
	}
	oldID, err := a.id(ctx, fromDB, from)
	if err != nil {
		return nil, err
	}
	newID, err := a.id(ctx, toDB, to)
	if err != nil {
		return nil, err
	}
	was := a.before[tableName(fromDB, from)]
	switch {
	case was != "" && newID == was && oldID != was:
		return nil, nil // it has happened
	case oldID == "":
		return nil, nil
	case newID != "" && !strings.EqualFold(tableName(fromDB, from), tableName(toDB, to)):
		return nil, sdk.Faultf(sdk.CodeSchemaMismatch, "tables %s and %s are both in the target", tableName(fromDB, from), tableName(toDB, to)).
			Suggest("drop or rename the one that does not come from the source")
	}
	return []string{"RENAME TABLE " + tableName(fromDB, from) + " TO " + tableName(toDB, to)}, nil
}

// add adds a column and gives the rows that are there what the source gave them,
// in one statement: the default, or the zero of the type where NULL is not
// allowed.
func (a *alteration) add(ctx context.Context, have *target.Table, alter string) ([]string, error) {
	c := a.d.Column
	text := alter + "ADD COLUMN " + a.types.Define(c, false)
	rows, err := a.s.query(ctx, "SELECT 1 FROM "+tableName(have.Namespace, have.Name)+" LIMIT 1")
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		if c.Flags&(batch.Generated|batch.Virtual) != 0 {
			return nil, sdk.Faultf(sdk.CodeRefused, "new column %s is computed by the source: its values in the rows that are there only the source knows", c.Name).
				Suggest("make the change in the target by hand, fill the column, then run once with ddl: ignore")
		}
		v, err := defaultText(c)
		if err != nil {
			return nil, err
		}
		if v != "" {
			text += " DEFAULT (" + v + ")"
		}
	}
	if after := a.d.After; after == "\x00" {
		text += " FIRST"
	} else if at := have.Find(names{}, after); after != "" && at >= 0 {
		text += " AFTER " + quote(have.Columns[at].Name)
	}
	return []string{text}, nil
}

// change renames a column, and gives it another type where the one it has does
// not hold the values.
func (a *alteration) change(have *target.Table, alter string, at int) ([]string, error) {
	c, old := a.d.Column, -1
	if a.d.OldName != "" && !strings.EqualFold(a.d.OldName, c.Name) {
		old = have.Find(names{}, a.d.OldName)
	}
	switch {
	case old >= 0 && at >= 0:
		return nil, sdk.Faultf(sdk.CodeSchemaMismatch, "columns %s and %s are both in the target", a.d.OldName, c.Name).
			Suggest("drop or rename the one that does not come from the source")
	case old < 0 && at < 0:
		return nil, nil
	case a.d.Kind == batch.DDLRenameColumn:
		if old < 0 {
			if have.Columns[at].Name != c.Name { // the case of letters alone
				return []string{alter + "RENAME COLUMN " + quote(have.Columns[at].Name) + " TO " + quote(c.Name)}, nil
			}
			return nil, nil
		}
		return []string{alter + "RENAME COLUMN " + quote(have.Columns[old].Name) + " TO " + quote(c.Name)}, nil
	}
	col := &have.Columns[max(old, at)]
	key := a.d.Schema != nil && slices.ContainsFunc(a.d.Schema.Key, func(k int) bool { return strings.EqualFold(a.d.Schema.Columns[k].Name, c.Name) })
	found, _ := a.types.Fits(c, col, key)
	switch {
	case found != "":
		to := a.types.Define(c, key || !col.Nullable)
		return []string{alter + "CHANGE COLUMN " + quote(col.Name) + " " + to}, nil
	case old >= 0:
		return []string{alter + "RENAME COLUMN " + quote(col.Name) + " TO " + quote(c.Name)}, nil
	}
	return nil, nil
}

// keys follows a change of the source's key. A primary key that stood for the old
// one goes: it would refuse rows that the source now allows. Other indexes stay
// at the source.
func (a *alteration) keys(have *target.Table, alter string) []string {
	s := a.d.Schema
	if s == nil || len(s.Key) == 0 {
		return nil
	}
	var want []int
	for _, k := range s.Key {
		at := have.Find(names{}, s.Columns[k].Name)
		if at < 0 {
			return nil
		}
		want = append(want, at)
	}
	slices.Sort(want)
	if slices.ContainsFunc(have.Uniques, func(u target.Unique) bool {
		return u.Plain && slices.Equal(slices.Sorted(slices.Values(u.Columns)), want)
	}) {
		return nil
	}
	drop := ""
	if len(have.Uniques) > 0 && have.Uniques[0].Primary {
		drop = "DROP PRIMARY KEY, "
		for _, at := range have.Uniques[0].Columns {
			if target.Place(names{}, s, have.Columns[at].Name) < 0 {
				return []string{a.types.AddKey(have, target.KeyNames(s))} // the target's own
			}
		}
	}
	return []string{alter + drop + "ADD PRIMARY KEY (" + target.List(names{}, target.KeyNames(s)) + ")"}
}
