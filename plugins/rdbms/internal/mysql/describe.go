package mysql

import (
	"context"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
)

// place splits the name of a source's table into database and table of the
// target.
func (w *Writer) place(namespace, name string) (database, table string) {
	if namespace == "" {
		return w.addr.database, name
	}
	return namespace, name
}

// describe reads the layout of a table, nil where there is none.
func (w *Writer) describe(ctx context.Context, s *session, database, name string) (*target.Table, error) {
	at := " WHERE TABLE_SCHEMA = " + literal(database) + " AND TABLE_NAME = " + literal(name)
	rows, err := s.query(ctx, "SELECT TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_SCHEMA FROM information_schema.TABLES"+at)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	t := &target.Table{Namespace: rows[0][3].text(), Name: rows[0][0].text()}
	full := tableName(t.Namespace, t.Name)
	if kind := rows[0][1].text(); kind != "BASE TABLE" {
		t.Faults = append(t.Faults, target.Fault{Found: "it is a " + strings.ToLower(kind) + ", expected a table", Mend: "give the source table another name by a mapping"})
	} else if engine := rows[0][2].text(); !strings.EqualFold(engine, "InnoDB") {
		t.Faults = append(t.Faults, target.Fault{Found: "the engine is " + engine + ", expected InnoDB: without transactions there is no fence", Mend: "ALTER TABLE " + full + " ENGINE=InnoDB"})
	}
	if rows, err = s.query(ctx, "SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, GENERATION_EXPRESSION FROM information_schema.COLUMNS"+at+" ORDER BY ORDINAL_POSITION"); err != nil {
		return nil, err
	}
	for _, r := range rows {
		extra := strings.ToLower(r[6].text())
		t.Columns = append(t.Columns, target.Column{
			Name: r[0].text(), Type: strings.ToLower(r[1].text()), Charset: r[2].text(), Collation: r[3].text(), Nullable: r[4].text() == "YES",
			HasValue: r[5] != nil || strings.Contains(extra, "auto_increment") || strings.Contains(extra, "default_generated"), Generated: len(r[7]) > 0,
		})
		if strings.HasPrefix(strings.ToLower(r[1].text()), "enum") || strings.HasPrefix(strings.ToLower(r[1].text()), "set(") {
			t.Columns[len(t.Columns)-1].Type = r[1].text()
		}
	}
	if err := w.uniques(ctx, s, t, at); err != nil {
		return nil, err
	}
	return t, w.ties(ctx, s, t)
}

func (w *Writer) uniques(ctx context.Context, s *session, t *target.Table, at string) error {
	q := "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS" + at + " AND NON_UNIQUE = 0 ORDER BY INDEX_NAME = 'PRIMARY' DESC, INDEX_NAME, SEQ_IN_INDEX"
	rows, err := s.query(ctx, q)
	if err != nil {
		return err
	}
	for _, r := range rows {
		name := r[0].text()
		if n := len(t.Uniques); n == 0 || t.Uniques[n-1].Name != name {
			t.Uniques = append(t.Uniques, target.Unique{Name: name, Primary: name == "PRIMARY", Plain: true})
		}
		u := &t.Uniques[len(t.Uniques)-1]
		i := t.Find(names{}, r[1].text())
		if i < 0 { // an expression
			u.Plain = false
			continue
		}
		if r[2] != nil {
			u.Plain = false
		}
		u.Columns = append(u.Columns, i)
	}
	return nil
}

// ties reads foreign keys in both directions, and triggers.
func (w *Writer) ties(ctx context.Context, s *session, t *target.Table) error {
	rows, err := s.query(ctx, "SELECT k.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME, r.DELETE_RULE, r.UPDATE_RULE"+
		" FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME"+
		" WHERE k.TABLE_SCHEMA = "+literal(t.Namespace)+" AND k.TABLE_NAME = "+literal(t.Name)+" AND k.REFERENCED_TABLE_NAME IS NOT NULL ORDER BY k.CONSTRAINT_NAME, k.ORDINAL_POSITION")
	if err != nil {
		return err
	}
	for _, r := range rows {
		name := r[0].text()
		if n := len(t.ForeignKeys); n == 0 || t.ForeignKeys[n-1].Name != name {
			t.ForeignKeys = append(t.ForeignKeys, target.ForeignKey{
				Name: name, RefNamespace: r[2].text(), RefTable: r[3].text(), OnDelete: r[5].text(), OnUpdate: r[6].text(),
			})
		}
		f := &t.ForeignKeys[len(t.ForeignKeys)-1]
		if i := t.Find(names{}, r[1].text()); i >= 0 {
			f.Columns = append(f.Columns, i)
		}
		f.RefColumns = append(f.RefColumns, r[4].text())
	}
	of := " WHERE UNIQUE_CONSTRAINT_SCHEMA = " + literal(t.Namespace) + " AND REFERENCED_TABLE_NAME = " + literal(t.Name)
	if rows, err = s.query(ctx, "SELECT 1 FROM information_schema.REFERENTIAL_CONSTRAINTS"+of+" LIMIT 1"); err != nil {
		return err
	}
	t.Referenced = len(rows) > 0
	if w.cfg.Triggers == Run {
		return nil
	}
	if rows, err = s.query(ctx, "SELECT TRIGGER_NAME, EVENT_MANIPULATION FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = "+literal(t.Namespace)+" AND EVENT_OBJECT_TABLE = "+literal(t.Name)); err != nil {
		return err
	}
	for _, r := range rows {
		t.Faults = append(t.Faults, target.Fault{
			Found: "trigger " + r[0].text() + " runs at each " + strings.ToLower(r[1].text()) + ", while what a trigger of the source did comes with its changes",
			Mend:  "DROP TRIGGER " + quote(t.Namespace) + "." + quote(r[0].text()) + ", or set triggers: run",
		})
	}
	return nil
}

func tableName(database, name string) string { return quote(database) + "." + quote(name) }

// names is how MySQL compares columns: letters have no case, whatever their
// script.
type names struct{}

func (names) Fold(name string) string  { return strings.ToLower(name) }
func (names) Quote(name string) string { return quote(name) }

// declared is a type of the target, taken apart.
type declared struct {
	base     string // "int", "varchar", …
	unsigned bool
	n, scale int      // in brackets; -1 = none
	labels   []string // of enum and set
}

func parseType(text string) declared {
	d := declared{n: -1, scale: -1}
	head, rest, ok := strings.Cut(text, "(")
	if !ok {
		words := strings.Fields(strings.ToLower(text))
		if len(words) > 0 {
			d.base = words[0]
		}
		d.unsigned = strings.Contains(strings.ToLower(text), "unsigned")
		return d
	}
	d.base = strings.ToLower(strings.TrimSpace(head))
	if d.base == "enum" || d.base == "set" {
		d.labels = parseLabels(rest)
		return d
	}
	in, tail, _ := strings.Cut(rest, ")")
	d.unsigned = strings.Contains(strings.ToLower(tail), "unsigned")
	a, b, two := strings.Cut(in, ",")
	d.n, _ = strconv.Atoi(strings.TrimSpace(a))
	if two {
		d.scale, _ = strconv.Atoi(strings.TrimSpace(b))
	}
	return d
}

// parseLabels reads 'a','b”c') as information_schema prints it.
func parseLabels(s string) []string {
	var out []string
	for len(s) > 0 && s[0] == '\'' {
		var b strings.Builder
		i := 1
		for ; i < len(s); i++ {
			if s[i] == '\'' {
				if i+1 < len(s) && s[i+1] == '\'' {
					i++
				} else {
					break
				}
			}
			b.WriteByte(s[i])
		}
		out = append(out, b.String())
		s = strings.TrimPrefix(s[min(i+1, len(s)):], ",")
	}
	return out
}
