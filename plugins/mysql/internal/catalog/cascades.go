package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
)

// Cascade is a foreign key whose action changes rows of the child that the log
// does not list.
type Cascade struct {
	Name          string
	Child, Parent schema.Name
	OnDelete      string
	OnUpdate      string
	Columns       []string // of the child
	RefColumns    []string // of the parent, beside them
}

// Silent lists the foreign keys of wanted tables whose actions the log does not
// hold: on MariaDB and older MySQL the engine carries them out below the log.
// MySQL 9 logs them unless innodb_native_foreign_keys is on. Keys of tables that
// are not wanted are left out.
func Silent(ctx context.Context, c Conn, want func(database, table string) bool) ([]Cascade, error) {
	if logs, err := LogsCascades(ctx, c); err != nil || logs {
		return nil, err
	}
	res, err := c.Query(ctx, `SELECT r.CONSTRAINT_SCHEMA, r.TABLE_NAME, r.CONSTRAINT_NAME, r.UNIQUE_CONSTRAINT_SCHEMA, r.REFERENCED_TABLE_NAME, r.DELETE_RULE, r.UPDATE_RULE, k.COLUMN_NAME, k.REFERENCED_COLUMN_NAME
FROM information_schema.REFERENTIAL_CONSTRAINTS r
JOIN information_schema.KEY_COLUMN_USAGE k ON k.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME AND k.TABLE_NAME = r.TABLE_NAME
ORDER BY 1, 2, 3, k.ORDINAL_POSITION`)
	if err != nil {
		return nil, err
	}
	var out []Cascade
	for _, row := range res.Rows {
		f := Cascade{
			Name:  row.Text(2),
			Child: schema.Name{Database: row.Text(0), Table: row.Text(1)}, Parent: schema.Name{Database: row.Text(3), Table: row.Text(4)},
			OnDelete: row.Text(5), OnUpdate: row.Text(6),
		}
		if !want(f.Child.Database, f.Child.Table) || !Acts(f.OnDelete) && !Acts(f.OnUpdate) {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Name != f.Name || out[n-1].Child != f.Child {
			out = append(out, f)
		}
		last := &out[len(out)-1]
		last.Columns, last.RefColumns = append(last.Columns, row.Text(7)), append(last.RefColumns, row.Text(8))
	}
	return out, nil
}

// Acts reports whether a rule makes the engine change rows.
func Acts(rule string) bool {
	return slices.Contains([]string{"CASCADE", "SET NULL", "SET DEFAULT"}, strings.ToUpper(rule))
}

// LogsCascades reports whether the log holds what foreign keys do.
func LogsCascades(ctx context.Context, c Conn) (bool, error) {
	native, err := c.Query(ctx, "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
	if err != nil {
		return false, err
	}
	return len(native.Rows) == 1 && strings.EqualFold(native.Rows[0].Text(1), "OFF"), nil
}
