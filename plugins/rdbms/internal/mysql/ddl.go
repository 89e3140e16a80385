package mysql

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// alter runs a typed schema change. Its statements commit by themselves, so they
// run on the writer's own session, while this transaction holds the progress
// rows of all lanes. What it is, and which tables there are, is stored before;
// the transaction that stores the position after it takes that away.
func (t *tx) alter(ctx context.Context, d *batch.Change) error {
	w := t.w
	if d == nil {
		return sdk.Faultf(sdk.CodeInternal, "schema change without a body")
	}
	name := sourceName(d.Namespace, d.Table)
	switch w.cfg.DDL {
	case target.Ignore:
		return nil
	case target.Stop:
		return sdk.Faultf(sdk.CodeRefused, "schema change of table %s, and ddl is stop: %s", name, d.Statement).
			Suggest("change the target by hand and set ddl: ignore, or set ddl: apply")
	}
	own, err := w.ownSession(ctx)
	if err != nil {
		return err
	}
	a := &alteration{w: w, s: own, d: d}
	if a.types, err = w.dialect(ctx, own); err != nil {
		return err
	}
	if err := a.intend(ctx, t.x, ledger.EncodePosition(t.next[0].Position)); err != nil {
		return err
	}
	texts, err := a.texts(ctx)
	if err == nil {
		for _, q := range texts {
			if err = own.exec(ctx, "/* datalink task="+comment(t.x.TaskUID)+" */ "+q); err != nil {
				break
			}
		}
	}
	w.forgetTable(name)
	if d.Kind == batch.DDLRenameTable {
		w.forgetTable(sourceName(d.OldTable()))
	}
	if err != nil {
		if f := sdk.AsFault(w.fault("schema change", err)); f.Code != sdk.CodeInternal {
			return w.fault("schema change of table "+name, err)
		}
		return sdk.Faultf(sdk.CodeRefused, "schema change of table %s (%s): %v", name, d.Statement, err).
			Suggest("make the change in the target by hand, then run once with ddl: ignore")
	}
	return t.l.s.exec(ctx, "DELETE FROM "+w.book(tabDDL)+" WHERE task = "+literal(t.x.Task)+" AND writer = "+literal(t.x.Writer))
}

func sourceName(namespace, table string) string {
	s := batch.Schema{Namespace: namespace, Table: table}
	return s.Name()
}

// comment keeps what stands in a comment from ending it.
func comment(s string) string { return strings.ReplaceAll(s, "*/", "") }

// forgetTable drops the plans of a table.
func (w *Writer) forgetTable(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.plans {
		if s.Name() == name {
			delete(w.plans, s)
		}
	}
	for folded, full := range w.names {
		if full == w.quotedName(name) {
			delete(w.names, folded)
		}
	}
}

func (w *Writer) quotedName(name string) string {
	if ns, t, ok := strings.Cut(name, "."); ok {
		return tableName(ns, t)
	}
	return tableName(w.addr.database, name)
}

// alteration is one schema change on its way to the target.
type alteration struct {
	w      *Writer
	s      *session
	d      *batch.Change
	types  *dialect
	before map[string]string // ids of the tables that it touches, before it ran first
}

// intend stores the change and the ids of its tables, or finds that it was stored
// before: then it may have run, and the ids are those from before.
func (a *alteration) intend(ctx context.Context, x *ledger.Session, position string) error {
	of := " WHERE task = " + literal(x.Task) + " AND writer = " + literal(x.Writer)
	rows, err := a.s.query(ctx, "SELECT position, statement, tables FROM "+a.w.book(tabDDL)+of)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d %s", a.d.Kind, a.d.Statement)
	if len(rows) == 1 && rows[0][0].text() == position && rows[0][1].text() == what {
		return json.Unmarshal(rows[0][2], &a.before)
	}
	a.before = map[string]string{}
	names := [][2]string{{a.d.Namespace, a.d.Table}}
	if a.d.Kind == batch.DDLRenameTable {
		ns, old := a.d.OldTable()
		names = append(names, [2]string{ns, old})
	}
	for _, n := range names {
		db, name := a.w.place(n[0], n[1])
		if a.before[tableName(db, name)], err = a.id(ctx, db, name); err != nil {
			return err
		}
	}
	ids, err := json.Marshal(a.before)
	if err != nil {
		return err
	}
	return a.s.exec(ctx, "REPLACE INTO "+a.w.book(tabDDL)+" (task, writer, claim_no, position, statement, tables, updated_at) VALUES ("+literal(x.Task)+", "+literal(x.Writer)+", "+
		fmt.Sprint(x.ClaimNo)+", "+literal(position)+", "+literal(what)+", "+literal(string(ids))+", UTC_TIMESTAMP(6))")
}

// id returns what tells a table from another one of its name: the number that
// InnoDB gave it or, where the account may not see it, the time it was made; ""
// where there is none.
func (a *alteration) id(ctx context.Context, database, name string) (string, error) {
	rows, err := a.s.query(ctx, "SELECT CREATE_TIME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+literal(database)+" AND TABLE_NAME = "+literal(name))
	if err != nil || len(rows) == 0 {
		return "", err
	}
	from := "INNODB_TABLES"
	if a.types.maria {
		from = "INNODB_SYS_TABLES"
	}
	ids, err := a.s.query(ctx, "SELECT TABLE_ID FROM information_schema."+from+" WHERE NAME = "+literal(database+"/"+name))
	switch {
	case err != nil && number(err) == 0:
		return "", err
	case err != nil, len(ids) == 0:
		return "made " + rows[0][0].text(), nil
	}
	return "id " + ids[0][0].text(), nil
}
