package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// Prepare makes the table ready in a transaction of its own, in which the claim
// is checked first: one that is over neither creates nor alters anything.
func (w *Writer) Prepare(ctx context.Context, s *batch.Schema) (sdk.Constraints, error) {
	if err := w.take(ctx); err != nil {
		return sdk.Constraints{}, err
	}
	defer w.give()
	doing := "prepare of " + s.Name()
	c, err := w.begin(ctx, readWrite, doing)
	if err != nil {
		return sdk.Constraints{}, err
	}
	failpoint.Hit("rdbms.prepare.begun")
	if err := w.claimed(c, doing); err != nil {
		w.rollback(c)
		return sdk.Constraints{}, err
	}
	_, cons, err := w.ensure(c, s)
	if err != nil {
		w.rollback(c)
		w.forget()
		return sdk.Constraints{}, w.fault(doing, err)
	}
	failpoint.Hit("rdbms.prepare.written")
	if err := c.exec(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		w.disconnect()
		return sdk.Constraints{}, w.fault(doing, err)
	}
	failpoint.Hit("rdbms.prepared")
	return cons, nil
}

// planOf returns the plan of a schema, made inside the open transaction where
// Prepare has not made it on this connection.
func (t *tx) planOf(s *batch.Schema) (*plan, error) {
	if p := t.w.plans[s]; p != nil {
		return p, nil
	}
	t.altered = true
	p, _, err := t.w.ensure(t.c, s)
	return p, err
}

// ensure creates or checks the table of a schema and plans its writes.
func (w *Writer) ensure(c *conn, s *batch.Schema) (*plan, sdk.Constraints, error) {
	var cons sdk.Constraints
	name := s.Name()
	if err := w.checkNames(s, name); err != nil {
		return nil, cons, err
	}
	if len(s.Key) == 0 && w.cfg.Keyless == Refuse {
		return nil, cons, sdk.Faultf(sdk.CodeRefused, "table %s has no primary key and no unique key without NULLs, and keyless is refuse", s.Name()).
			Suggest("set keyless: append (rows are only added) or full-row-match, or leave the table out")
	}
	t, err := describe(c, name)
	if err != nil {
		return nil, cons, err
	}
	if t == nil {
		if w.cfg.Create != Auto {
			return nil, cons, sdk.Faultf(sdk.CodeSchemaMismatch, "table %s is not in the target, and create is off", name).Suggest("%s", createText(s, name))
		}
		if err := c.run(createText(s, name)); err != nil {
			return nil, cons, fmt.Errorf("create table %s: %w", name, err)
		}
		if t, err = describe(c, name); err != nil {
			return nil, cons, err
		}
	}
	if t, err = w.addMissing(c, s, t); err != nil {
		return nil, cons, err
	}
	if err := w.fit(s, t); err != nil {
		return nil, cons, err
	}
	p := newPlan(s, t)
	if old := w.plans[s]; old != nil {
		old.close()
	}
	w.plans[s] = p
	return p, constraints(s, t), nil
}

// checkNames refuses names that SQLite would take for the same.
func (w *Writer) checkNames(s *batch.Schema, name string) error {
	if err := checkName("table", name); err != nil {
		return err
	}
	if other, ok := w.names[fold(name)]; ok && other != name {
		return sdk.Faultf(sdk.CodeSchemaMismatch, "tables %q and %q differ only in the case of letters, which SQLite does not tell apart", other, name).
			Suggest("give one of them another name by a mapping")
	}
	w.names[fold(name)] = name
	seen := map[string]string{}
	for i := range s.Columns {
		col := s.Columns[i].Name
		if err := checkName("column of "+s.Name(), col); err != nil {
			return err
		}
		if other, ok := seen[fold(col)]; ok {
			return sdk.Faultf(sdk.CodeSchemaMismatch, "columns %q and %q of table %s differ only in the case of letters, which SQLite does not tell apart", other, col, s.Name()).
				Suggest("rename one of them by a mapping")
		}
		seen[fold(col)] = col
	}
	return nil
}

func columnText(c *batch.Column) string {
	q := quote(c.Name)
	if d := classOf(c).declared(); d != "" {
		q += " " + d
	}
	return q
}

func keyNames(s *batch.Schema) []string {
	out := make([]string, len(s.Key))
	for i, k := range s.Key {
		out[i] = s.Columns[k].Name
	}
	return out
}

// createText makes the table of a schema with its key as primary key. Other keys
// and NOT NULL stay at the source, which has checked them: here they would only
// demand an order of changes.
func createText(s *batch.Schema, name string) string {
	var parts []string
	for i := range s.Columns {
		q := columnText(&s.Columns[i])
		if slices.Contains(s.Key, i) {
			q += " NOT NULL"
		}
		parts = append(parts, q)
	}
	if len(s.Key) > 0 {
		parts = append(parts, "PRIMARY KEY ("+list(keyNames(s))+")")
	}
	return "CREATE TABLE " + quote(name) + " (" + strings.Join(parts, ", ") + ")"
}

func (w *Writer) addMissing(c *conn, s *batch.Schema, t *table) (*table, error) {
	if w.cfg.OnMissingColumn != Add {
		return t, nil
	}
	added := false
	for i := range s.Columns {
		col := &s.Columns[i]
		if _, ok := t.byName[fold(col.Name)]; ok {
			continue
		}
		if slices.Contains(s.Key, i) {
			continue // fit names it
		}
		if err := c.run("ALTER TABLE " + quote(t.name) + " ADD COLUMN " + columnText(col)); err != nil {
			return nil, fmt.Errorf("add column %s to table %s: %w", col.Name, t.name, err)
		}
		added = true
	}
	if !added {
		return t, nil
	}
	return describe(c, t.name)
}

// fit checks the target table against the schema and reports all that is wrong
// with it at once, each with the statement that mends it.
func (w *Writer) fit(s *batch.Schema, t *table) error {
	var found, mend []string
	for i := range s.Columns {
		col := &s.Columns[i]
		at, ok := t.byName[fold(col.Name)]
		if !ok {
			if w.cfg.OnMissingColumn != Ignore || slices.Contains(s.Key, i) {
				found = append(found, fmt.Sprintf("column %s (%s) is missing", col.Name, col.Type))
				mend = append(mend, "ALTER TABLE "+quote(t.name)+" ADD COLUMN "+columnText(col))
			}
			continue
		}
		have := &t.columns[at]
		switch {
		case have.generated:
			found = append(found, fmt.Sprintf("column %s is generated in the target", have.name))
			mend = append(mend, "ALTER TABLE "+quote(t.name)+" DROP COLUMN "+quote(have.name)+"; ALTER TABLE "+quote(t.name)+" ADD COLUMN "+columnText(col))
		case !fits(col, have.declared, t.strict):
			found = append(found, fmt.Sprintf("column %s is declared %q, which gives it %s and changes values of type %s", have.name, have.declared, affinityOf(have.declared, t.strict), col.Type))
			tmp := quote(have.name + "_new")
			mend = append(mend, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s; UPDATE %[1]s SET %[3]s = %[4]s; ALTER TABLE %[1]s DROP COLUMN %[4]s; ALTER TABLE %[1]s RENAME COLUMN %[3]s TO %[4]s",
				quote(t.name), strings.TrimSpace(tmp+" "+classOf(col).declared()), tmp, quote(have.name)))
		}
	}
	for i := range t.columns {
		have := &t.columns[i]
		if have.notNull && !have.hasValue && !have.generated && s.Column(have.name) < 0 && !hasFolded(s, have.name) {
			found = append(found, fmt.Sprintf("column %s is NOT NULL without a default, and the source has no such column", have.name))
			mend = append(mend, "ALTER TABLE "+quote(t.name)+" DROP COLUMN "+quote(have.name))
		}
	}
	if len(s.Key) > 0 && !t.hasKey(s) {
		found = append(found, "no primary key or unique index on exactly "+list(keyNames(s))+" with the collation BINARY")
		mend = append(mend, "CREATE UNIQUE INDEX "+quote(t.name+"_datalink_key")+" ON "+quote(t.name)+" ("+list(keyNames(s))+")")
	}
	if len(s.Key) == 0 && w.cfg.Keyless == FullRowMatch && t.rowID() == "" {
		found = append(found, "rows without a key are found by their row number, which the table does not have or its columns hide")
		mend = append(mend, "create it without WITHOUT ROWID and without a column named oid")
	}
	if len(found) == 0 {
		return nil
	}
	return sdk.Faultf(sdk.CodeSchemaMismatch, "table %s in the target does not fit table %s of the source: %s", t.name, s.Name(), strings.Join(found, "; ")).
		Suggest("%s", strings.Join(mend, "; "))
}

func hasFolded(s *batch.Schema, name string) bool {
	return slices.ContainsFunc(s.Columns, func(c batch.Column) bool { return fold(c.Name) == fold(name) })
}

// hasKey reports whether rows can be found and replaced by the key of s.
func (t *table) hasKey(s *batch.Schema) bool {
	var want []int
	for _, k := range s.Key {
		at, ok := t.byName[fold(s.Columns[k].Name)]
		if !ok {
			return false
		}
		want = append(want, at)
	}
	slices.Sort(want)
	return slices.ContainsFunc(t.uniques, func(u unique) bool {
		have := slices.Clone(u.columns)
		slices.Sort(have)
		return u.plain && len(u.collated) == 0 && slices.Equal(have, want)
	})
}

// constraints are the target's unique keys beside the one rows are found by.
func constraints(s *batch.Schema, t *table) sdk.Constraints {
	var cons sdk.Constraints
	for _, u := range t.uniques {
		ix := batch.Index{Name: u.name}
		known := u.plain
		for _, at := range u.columns {
			place := slices.IndexFunc(s.Columns, func(c batch.Column) bool { return fold(c.Name) == fold(t.columns[at].name) })
			if place < 0 {
				known = false
				break
			}
			ix.Columns = append(ix.Columns, place)
			if slices.Contains(u.collated, at) && !slices.Contains(cons.Collated, place) {
				cons.Collated = append(cons.Collated, place)
			}
		}
		a, b := slices.Sorted(slices.Values(ix.Columns)), slices.Sorted(slices.Values(s.Key))
		switch {
		case !known:
			// Which changes meet in it cannot be said from their values.
			cons.OneLane = true
		case !slices.Equal(a, b) || len(u.collated) > 0:
			cons.Uniques = append(cons.Uniques, ix)
		}
	}
	cons.Unordered = slices.ContainsFunc(s.Key, func(k int) bool { return !ordered(&s.Columns[k]) })
	return cons
}

func newPlan(s *batch.Schema, t *table) *plan {
	p := &plan{schema: s, table: t.name, key: s.Key, rowID: t.rowID(), stmts: map[string]*stmt{}}
	alias := t.alias()
	for i := range s.Columns {
		var to into
		if at, ok := t.byName[fold(s.Columns[i].Name)]; ok {
			have := &t.columns[at]
			to = into{name: have.name, notNull: have.notNull, inKey: slices.Contains(s.Key, i), narrow: narrow(&s.Columns[i], have.declared, t.strict)}
		}
		p.columns = append(p.columns, to)
		p.apart = p.apart || to.inKey && len(s.Key) > 1 && alias != "" && fold(to.name) == fold(alias)
	}
	return p
}

// narrow reports whether a number above 2^63-1 would become a REAL in the column.
func narrow(c *batch.Column, declared string, strict bool) bool {
	return classOf(c) == asNumber && (affinityOf(declared, strict) != affBlob || strict && !strings.EqualFold(declared, "ANY"))
}
