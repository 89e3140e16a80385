package postgres

import (
	"context"
	"fmt"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// Prepare makes the table ready in a transaction of its own, in which the claim
// is checked first: one that is over neither creates nor alters anything.
func (w *Writer) Prepare(ctx context.Context, s *batch.Schema) (sdk.Constraints, error) {
	var none sdk.Constraints
	doing := "prepare of " + s.Name()
	l, err := w.take(ctx, sdk.WriterLane)
	if err != nil {
		return none, err
	}
	defer l.give()
	c, err := w.connected(ctx, l)
	if err != nil {
		return none, err
	}
	p, cons, err := w.prepare(ctx, c, s, doing)
	if err != nil {
		if rerr := c.run(ctx, "ROLLBACK"); rerr != nil {
			l.drop()
		}
		return none, w.fault(doing, err)
	}
	w.plans.put(s, p)
	return cons, nil
}

func (w *Writer) prepare(ctx context.Context, c *session, s *batch.Schema, doing string) (*plan, sdk.Constraints, error) {
	var none sdk.Constraints
	if err := c.run(ctx, begin); err != nil {
		return nil, none, err
	}
	failpoint.Hit("rdbms.prepare.begun")
	if err := w.claimed(ctx, c, doing); err != nil {
		return nil, none, err
	}
	p, cons, err := w.ensure(ctx, c, s)
	if err != nil {
		return nil, none, err
	}
	failpoint.Hit("rdbms.prepare.written")
	if err := commit(ctx, c); err != nil {
		return nil, none, err
	}
	failpoint.Hit("rdbms.prepared")
	return p, cons, nil
}

// claimed checks that the claim is still in force and keeps it so until the
// transaction ends.
func (w *Writer) claimed(ctx context.Context, c *session, doing string) error {
	s := w.session()
	if s == nil {
		return sdk.Faultf(sdk.CodeInternal, "%s in %s before a claim", doing, w.place())
	}
	row, err := w.readRow(ctx, c, s.Task, s.Writer, sdk.WriterLane, "FOR UPDATE")
	if err != nil {
		return err
	}
	if sw := w.cfg.Switches; s.Holds(row) || row != nil && (sw.EpochOff || sw.ClaimOff && row.Execution == s.Execution) {
		return nil
	}
	f := s.Refusal(sdk.WriterLane, 0, row)
	f.Message = doing + " refused: " + f.Message
	return f
}

// planOf returns the plan of a schema, made inside the open transaction where
// Prepare has not made it or a schema change has undone it.
func (t *tx) planOf(ctx context.Context, s *batch.Schema) (*plan, error) {
	if p := t.w.plans.get(s); p != nil {
		return p, nil
	}
	t.altered = true
	p, _, err := t.w.ensure(ctx, t.s, s)
	if err == nil {
		t.w.plans.put(s, p)
	}
	return p, err
}

// namespace returns the schema of the target that a table goes to.
func (w *Writer) namespace(name string) string {
	if name == "" {
		return w.cfg.Schema
	}
	return name
}

// ensure creates or checks the table of a schema and plans its writes.
func (w *Writer) ensure(ctx context.Context, c *session, s *batch.Schema) (*plan, sdk.Constraints, error) {
	var none sdk.Constraints
	if err := w.admit(s); err != nil {
		return nil, none, err
	}
	namespace := w.namespace(s.Namespace)
	t, err := w.describe(ctx, c, namespace, s.Table)
	if err != nil {
		return nil, none, err
	}
	if t == nil {
		if w.cfg.Create != target.Auto {
			return nil, none, sdk.Faultf(sdk.CodeSchemaMismatch, "table %s is not in the target, and create is off", tableName(namespace, s.Table)).
				Suggest("%s", createText(s, namespace, s.Table))
		}
		if err := createTable(ctx, c, s, namespace); err != nil {
			return nil, none, fmt.Errorf("create table %s: %w", tableName(namespace, s.Table), err)
		}
		if t, err = w.describe(ctx, c, namespace, s.Table); err != nil {
			return nil, none, err
		}
	}
	d := newDialect(s, t)
	m, err := target.Compare(d, &w.cfg.Options, s, &t.Table)
	if err != nil {
		return nil, none, err
	}
	if len(m.Missing) > 0 {
		for _, i := range m.Missing {
			if err := c.run(ctx, d.AddColumn(&t.Table, &s.Columns[i])); err != nil {
				return nil, none, fmt.Errorf("add column %s to table %s: %w", s.Columns[i].Name, tableName(namespace, t.Name), err)
			}
		}
		if t, err = w.describe(ctx, c, namespace, t.Name); err != nil {
			return nil, none, err
		}
		if m, err = target.Compare(newDialect(s, t), &w.cfg.Options, s, &t.Table); err != nil {
			return nil, none, err
		}
	}
	p := newPlan(s, t, m)
	return p, w.constraints(s, m, p), nil
}

// describe reads the layout of a table that rows go to.
func (w *Writer) describe(ctx context.Context, c *session, namespace, name string) (*table, error) {
	t, err := describe(ctx, c, namespace, name)
	if t != nil && t.triggers != "" && w.cfg.Triggers != TriggersRun {
		full := tableName(t.Namespace, t.Name)
		t.Faults = append(t.Faults, target.Fault{
			Found: "it has the triggers " + t.triggers + ", which would do again what triggers of the source did",
			Mend:  "ALTER TABLE " + full + " DISABLE TRIGGER USER, or set triggers: run or skip",
		})
	}
	return t, err
}

// constraints names the tables that foreign keys refer to as the stream does.
func (w *Writer) constraints(s *batch.Schema, m *target.Match, p *plan) sdk.Constraints {
	c := m.Constraints
	if len(s.Key) > 0 {
		_, ok := unordered(p)
		c.Unordered = !ok
	}
	for i := range c.ForeignKeys {
		f := &c.ForeignKeys[i]
		if s.Namespace == "" && f.RefSchema == w.cfg.Schema || f.RefSchema == s.Namespace {
			f.RefSchema = ""
		}
	}
	return c
}

// admit refuses what has no place in any table.
func (w *Writer) admit(s *batch.Schema) error {
	if err := checkName("table", s.Table); err != nil {
		return err
	}
	if err := checkName("schema", w.namespace(s.Namespace)); err != nil {
		return err
	}
	for i := range s.Columns {
		if err := checkName("column of "+s.Name(), s.Columns[i].Name); err != nil {
			return err
		}
	}
	if len(s.Key) == 0 && w.cfg.Keyless == target.Refuse {
		return sdk.Faultf(sdk.CodeRefused, "table %s has no primary key and no unique key without NULLs, and keyless is refuse", s.Name()).
			Suggest("set keyless: append (rows are only added) or full-row-match, or leave the table out")
	}
	return nil
}

func createTable(ctx context.Context, c *session, s *batch.Schema, namespace string) error {
	if err := createNamespace(ctx, c, namespace); err != nil {
		return err
	}
	return c.run(ctx, createText(s, namespace, s.Table))
}

// createNamespace asks first: CREATE SCHEMA IF NOT EXISTS needs its privilege even
// where there is nothing to do.
func createNamespace(ctx context.Context, c *session, name string) error {
	rows, err := c.query(ctx, "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1", name)
	if err != nil || len(rows) > 0 {
		return err
	}
	return c.run(ctx, "CREATE SCHEMA IF NOT EXISTS "+quote(name))
}

// Rehearse returns the statements that Prepare would run, and runs none.
func (w *Writer) Rehearse(ctx context.Context, s *batch.Schema) ([]string, sdk.Constraints, error) {
	var none sdk.Constraints
	if err := w.admit(s); err != nil {
		return nil, none, err
	}
	c, err := w.dial(ctx)
	if err != nil {
		return nil, none, err
	}
	defer c.close()
	namespace := w.namespace(s.Namespace)
	t, err := w.describe(ctx, c, namespace, s.Table)
	if err != nil {
		return nil, none, w.fault("look at "+s.Name(), err)
	}
	if t == nil {
		text := createText(s, namespace, s.Table)
		if w.cfg.Create != target.Auto {
			return nil, none, sdk.Faultf(sdk.CodeSchemaMismatch, "table %s is not in the target, and create is off", tableName(namespace, s.Table)).Suggest("%s", text)
		}
		return []string{text}, none, nil
	}
	d := newDialect(s, t)
	m, err := target.Compare(d, &w.cfg.Options, s, &t.Table)
	if err != nil {
		return nil, none, err
	}
	var out []string
	for _, i := range m.Missing {
		out = append(out, d.AddColumn(&t.Table, &s.Columns[i]))
	}
	return out, w.constraints(s, m, newPlan(s, t, m)), nil
}
