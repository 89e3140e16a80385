package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Errors of the server.
const (
	errNoSuchTable    = 1146
	errNoSuchDatabase = 1049
	errChanged        = 1412 // the table's definition is newer than the snapshot
	errTimeout        = 3024
	errTimeoutMariaDB = 1969
)

// definition asks the server what the table is now. Nil: there is none.
func (s *session) definition(ctx context.Context, n schema.Name) (*schema.Table, error) {
	// Labels and defaults come in the character set of results.
	if _, err := s.Exec(ctx, "SET character_set_results = utf8mb4"); err != nil {
		return nil, err
	}
	res, err := s.Query(ctx, "SHOW CREATE TABLE "+server.Quote(n.Database)+"."+server.Quote(n.Table))
	if _, e := s.Exec(ctx, "SET character_set_results = NULL"); err == nil {
		err = e
	}
	switch server.Code(err) {
	case errNoSuchTable, errNoSuchDatabase:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(res.Rows) == 0 || len(res.Rows[0]) < 2 || res.Columns[0].Name == "View" {
		return nil, nil
	}
	h := schema.NewHistory()
	eff := h.Apply(schema.Statement{
		Text: res.Rows[0].Text(1), Database: n.Database, Collation: s.coll,
		Dialect: schema.Dialect{MariaDB: s.MariaDB, Version: s.Number},
	})
	if eff.Err != nil {
		return nil, sdk.Faultf(sdk.CodeUnknownTable, "definition of %s: %v", n, eff.Err).Suggest("exclude the table, and report its SHOW CREATE TABLE")
	}
	t := h.Get(n.Database, n.Table)
	if t == nil {
		return nil, sdk.Faultf(sdk.CodeUnknownTable, "definition of %s was not understood: %v", n, h.Unknown(n.Database, n.Table)).
			Suggest("exclude the table, and report its SHOW CREATE TABLE")
	}
	return t, nil
}

// selection makes what reads the table as it is now. Nil: there is none.
func (w *Weaver) selection(ctx context.Context, s *session, t *table) (*rows.Selection, error) {
	def, err := s.definition(ctx, t.name)
	if def == nil || err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.ids
	if t.schema != nil {
		id = t.schema.ID // where nothing has changed
	}
	sel, err := rows.NewSelection(def, rows.Options{Format: &s.format, ID: id, Source: w.cfg.SourceName, Version: 1})
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", t.name, err)
	}
	if t.schema != nil && bytes.Equal(batch.AppendSchema(nil, sel.Schema), batch.AppendSchema(nil, t.schema)) {
		return sel, nil
	}
	sel.Schema.ID = w.ids
	w.ids++
	t.schema = sel.Schema
	return sel, nil
}

// identity is what makes the places in a table's key comparable: cursors of one
// are of no use in another.
func identity(sel *rows.Selection) string {
	var b strings.Builder
	for _, k := range sel.Schema.Key {
		c := &sel.Schema.Columns[k]
		fmt.Fprintf(&b, "%s %s %s,", c.Name, c.Native, c.Collation)
	}
	return b.String()
}

// ordered reports whether the server has an index in the order of the key.
func ordered(sel *rows.Selection) bool {
	whole := func(parts []schema.Part) bool {
		if len(parts) != len(sel.Schema.Key) {
			return false
		}
		for i, p := range parts {
			if p.Prefix > 0 || !strings.EqualFold(p.Column, sel.Schema.Columns[sel.Schema.Key[i]].Name) {
				return false
			}
		}
		return true
	}
	if whole(sel.Def.Primary) {
		return true
	}
	for _, u := range sel.Def.Uniques {
		if !u.Expression && whole(u.Parts) {
			return true
		}
	}
	return false
}

// estimate is how many rows, and bytes a row, the server believes the table has.
func (s *session) estimate(ctx context.Context, n schema.Name) (rows, width int64, err error) {
	res, err := s.Query(ctx, "SELECT TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+server.Literal(n.Database)+" AND TABLE_NAME = "+server.Literal(n.Table))
	if err != nil || len(res.Rows) == 0 {
		return 0, 0, err
	}
	rows, _ = strconv.ParseInt(res.Rows[0].Text(0), 10, 64)
	width, _ = strconv.ParseInt(res.Rows[0].Text(1), 10, 64)
	return rows, width, nil
}

// tables lists the tables of the server that are wanted, those that others refer
// to before those that refer.
func (s *session) tables(ctx context.Context, wants func(db, table string) bool) ([]schema.Name, error) {
	res, err := s.Query(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SEQUENCE', 'SYSTEM VERSIONED') "+
		"AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1, 2")
	if err != nil {
		return nil, err
	}
	var out []schema.Name
	for _, r := range res.Rows {
		if wants(r.Text(0), r.Text(1)) {
			out = append(out, schema.Name{Database: r.Text(0), Table: r.Text(1)})
		}
	}
	return out, nil
}

// parents lists, for tables with foreign keys, which tables they refer to.
func (s *session) parents(ctx context.Context) (map[schema.Name][]schema.Name, error) {
	res, err := s.Query(ctx, "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL")
	if err != nil {
		return nil, err
	}
	out := map[schema.Name][]schema.Name{}
	for _, r := range res.Rows {
		child, parent := schema.Name{Database: r.Text(0), Table: r.Text(1)}, schema.Name{Database: r.Text(2), Table: r.Text(3)}
		if child != parent {
			out[child] = append(out[child], parent)
		}
	}
	return out, nil
}
