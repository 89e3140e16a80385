package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// Prepare makes the table ready on the writer's own session. It holds the
// writer's lock, which a claim takes first: one that is over neither creates nor
// alters anything.
func (w *Writer) Prepare(ctx context.Context, s *batch.Schema) (sdk.Constraints, error) {
	own, err := w.ownSession(ctx)
	if err != nil {
		return sdk.Constraints{}, err
	}
	failpoint.Hit("rdbms.prepare.begun")
	p, cons, err := w.ensure(ctx, own, s, func(text string) error { return own.exec(ctx, text) })
	if err != nil {
		return sdk.Constraints{}, w.fault("prepare of "+s.Name(), err)
	}
	failpoint.Hit("rdbms.prepare.written")
	w.mu.Lock()
	w.plans[s] = p
	w.mu.Unlock()
	failpoint.Hit("rdbms.prepared")
	return cons, nil
}

// Look returns the progress that the target holds and takes nothing.
func (w *Writer) Look(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	var out sdk.Claimed
	s, err := w.connect(ctx, true)
	if err != nil {
		return out, w.fault("connect", err)
	}
	defer s.close()
	have, err := w.engines(ctx, s)
	if err != nil || have[tabProgress] == "" {
		return out, w.fault("progress", err)
	}
	rows, err := w.readRows(ctx, s, ex.Task, ex.Writer, false)
	if err != nil {
		return out, w.fault("progress", err)
	}
	for i := range rows {
		if rows[i].Lane < 0 || rows[i].TaskUID != ex.TaskUID {
			continue
		}
		p, err := rows[i].Point()
		if err != nil {
			return out, err
		}
		out.Points = append(out.Points, p)
		out.Lanes, out.Mapping = rows[i].Lanes, rows[i].Mapping
	}
	return out, w.fault("progress", w.stored(ctx, s, ex.Task, ex.Writer, &out))
}

// Rehearse returns the statements that Prepare would run.
func (w *Writer) Rehearse(ctx context.Context, s *batch.Schema) ([]string, sdk.Constraints, error) {
	own, err := w.connect(ctx, true)
	if err != nil {
		return nil, sdk.Constraints{}, w.fault("connect", err)
	}
	defer own.close()
	var texts []string
	_, cons, err := w.ensure(ctx, own, s, func(text string) error { texts = append(texts, text); return nil })
	return texts, cons, w.fault("prepare of "+s.Name(), err)
}

// planOf returns the plan of a schema. One that Prepare has not made, as after
// another claim, is made of the table as it is.
func (w *Writer) planOf(ctx context.Context, s *session, schema *batch.Schema) (*plan, error) {
	w.mu.Lock()
	p := w.plans[schema]
	w.mu.Unlock()
	if p != nil {
		return p, nil
	}
	refuse := func(text string) error {
		return sdk.Faultf(sdk.CodeUnavailable, "table %s has changed since it was prepared: %s", schema.Name(), text).Retry()
	}
	p, _, err := w.ensure(ctx, s, schema, refuse)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans[schema] = p
	return p, nil
}

// ensure creates or checks the table of a schema and plans its writes. Statements
// that change the target go to run.
func (w *Writer) ensure(ctx context.Context, s *session, schema *batch.Schema, run func(string) error) (*plan, sdk.Constraints, error) {
	var cons sdk.Constraints
	d, err := w.dialect(ctx, s)
	if err != nil {
		return nil, cons, err
	}
	database, name := w.place(schema.Namespace, schema.Table)
	if err := w.checkNames(schema, database, name); err != nil {
		return nil, cons, err
	}
	if len(schema.Key) == 0 && w.cfg.Keyless == target.Refuse {
		return nil, cons, sdk.Faultf(sdk.CodeRefused, "table %s has no primary key and no unique key without NULLs, and keyless is refuse", schema.Name()).
			Suggest("set keyless: append (rows are only added) or full-row-match, or leave the table out")
	}
	t, err := w.describe(ctx, s, database, name)
	if err != nil {
		return nil, cons, err
	}
	if t == nil {
		text := d.create(schema, database, name)
		if w.cfg.Create != target.Auto {
			return nil, cons, sdk.Faultf(sdk.CodeSchemaMismatch, "table %s is not in the target, and create is off", tableName(database, name)).Suggest("%s", text)
		}
		if err := w.createDatabase(ctx, s, database, run); err != nil {
			return nil, cons, err
		}
		if err := run(text); err != nil {
			return nil, cons, fmt.Errorf("create table %s: %w", tableName(database, name), err)
		}
		if t, err = w.describe(ctx, s, database, name); err != nil {
			return nil, cons, err
		}
		if t == nil { // a rehearsal
			return nil, cons, nil
		}
	}
	m, err := target.Compare(d, &w.cfg.Options, schema, t)
	if err != nil {
		return nil, cons, err
	}
	if len(m.Missing) > 0 {
		for _, i := range m.Missing {
			text := d.AddColumn(t, &schema.Columns[i])
			if err := run(text); err != nil {
				return nil, cons, fmt.Errorf("%s: %w", text, err)
			}
		}
		if t, err = w.describe(ctx, s, database, name); err != nil {
			return nil, cons, err
		}
		again := w.cfg.Options
		again.OnMissingColumn = target.Ignore
		if m, err = target.Compare(d, &again, schema, t); err != nil {
			return nil, cons, err
		}
	}
	cons = m.Constraints
	cons.Unordered = len(schema.Key) > 0 && unordered(schema, t, m)
	for i := range cons.ForeignKeys {
		// Tables of the url's database come without its name where this one does.
		if f := &cons.ForeignKeys[i]; schema.Namespace == "" && f.RefSchema == database {
			f.RefSchema = ""
		}
	}
	return newPlan(schema, t, m, d.maria), cons, nil
}

func (w *Writer) createDatabase(ctx context.Context, s *session, database string, run func(string) error) error {
	rows, err := s.query(ctx, "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+literal(database))
	if err != nil || len(rows) > 0 {
		return err
	}
	if err := run("CREATE DATABASE IF NOT EXISTS " + quote(database) + " CHARACTER SET utf8mb4"); err != nil {
		return fmt.Errorf("create database %s: %w", database, err)
	}
	return nil
}

// foldTable brings a table's name to the form in which the server compares it. It
// is called with mu held.
func (w *Writer) foldTable(database, name string) string {
	full := tableName(database, name)
	if w.srv != nil && w.srv.foldTable {
		return strings.ToLower(full)
	}
	return full
}

// checkNames refuses names that the server cannot hold or would take for the same.
func (w *Writer) checkNames(s *batch.Schema, database, name string) error {
	if err := checkName("table", name); err != nil {
		return err
	}
	if err := checkName("database", database); err != nil {
		return err
	}
	w.mu.Lock()
	full := tableName(database, name)
	other, ok := w.names[w.foldTable(database, name)]
	if !ok {
		w.names[w.foldTable(database, name)] = full
	}
	w.mu.Unlock()
	if ok && other != full {
		return sdk.Faultf(sdk.CodeSchemaMismatch, "tables %s and %s differ only in the case of letters, which the target does not tell apart (lower_case_table_names)", other, full).
			Suggest("give one of them another name by a mapping")
	}
	seen := map[string]string{}
	for i := range s.Columns {
		col := s.Columns[i].Name
		if err := checkName("column of "+s.Name(), col); err != nil {
			return err
		}
		f := names{}.Fold(col)
		if other, ok := seen[f]; ok {
			return sdk.Faultf(sdk.CodeSchemaMismatch, "columns %q and %q of table %s differ only in the case of letters, which the target does not tell apart", other, col, s.Name()).
				Suggest("rename one of them by a mapping")
		}
		seen[f] = col
	}
	return nil
}

// dialect returns what is known of the server's types, read once a claim.
func (w *Writer) dialect(ctx context.Context, s *session) (*dialect, error) {
	w.mu.Lock()
	d, srv := w.types, w.srv
	w.mu.Unlock()
	if d != nil {
		return d, nil
	}
	if srv == nil {
		var err error
		if srv, err = readServer(ctx, s); err != nil {
			return nil, err
		}
	}
	rows, err := s.query(ctx, "SELECT COLLATION_NAME, CHARACTER_SET_NAME FROM information_schema.COLLATIONS")
	if err != nil {
		return nil, err
	}
	d = &dialect{maria: srv.maria, collations: map[string]string{}}
	for _, r := range rows {
		d.collations[r[0].text()] = r[1].text()
	}
	if srv.maria {
		// Those of UCA 14 stand there without the charset, which any may have.
		for name, cs := range d.collations {
			if cs == "" {
				d.collations["utf8mb4_"+name] = "utf8mb4"
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.types, w.srv = d, srv
	return d, nil
}
