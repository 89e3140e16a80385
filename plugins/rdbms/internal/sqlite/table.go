package sqlite

import (
	"context"
	"strings"

	"github.com/datalink-go/datalink/sdk"
)

// table is a table of the target as SQLite describes it.
type table struct {
	name    string
	strict  bool
	noRowID bool
	columns []column
	byName  map[string]int // folded name to place
	uniques []unique       // the primary key first, where there is one
}

type column struct {
	name      string
	declared  string
	notNull   bool
	hasValue  bool // has a default
	generated bool
	keyPlace  int // place in the primary key, from 1; 0 = not in it
}

// unique is a key of the table: columns by place, in the order of the index.
type unique struct {
	name    string
	primary bool
	columns []int
	// plain is false for expressions and partial indexes, which do not compare all
	// rows by their columns.
	plain    bool
	collated []int // columns that it compares otherwise than byte by byte
}

// describe reads the layout of a table, nil where there is none.
func describe(c *conn, name string) (*table, error) {
	ctx := context.Background()
	rows, err := c.query(ctx, "SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main' AND name = ? COLLATE NOCASE", name)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	if kind := text(rows[0][1]); kind != "table" {
		return nil, sdk.Faultf(sdk.CodeSchemaMismatch, "%s in the target is a %s, expected a table", name, kind).
			Suggest("give the source table another name by a mapping, or drop the %s", kind)
	}
	t := &table{name: text(rows[0][0]), noRowID: number(rows[0][2]) != 0, strict: number(rows[0][3]) != 0, byName: map[string]int{}}
	rows, err = c.query(ctx, `SELECT name, type, "notnull", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?)`, t.name)
	if err != nil {
		return nil, err
	}
	key := unique{name: "primary key", primary: true, plain: true}
	for i, r := range rows {
		col := column{
			name: text(r[0]), declared: text(r[1]), notNull: number(r[2]) != 0, hasValue: number(r[3]) != 0,
			keyPlace: int(number(r[4])), generated: number(r[5]) >= 2,
		}
		t.columns = append(t.columns, col)
		t.byName[fold(col.name)] = i
	}
	for place := 1; place <= len(t.columns); place++ {
		for i := range t.columns {
			if t.columns[i].keyPlace == place {
				key.columns = append(key.columns, i)
			}
		}
	}
	indexes, err := c.query(ctx, `SELECT name, origin, partial FROM pragma_index_list(?) WHERE "unique"`, t.name)
	if err != nil {
		return nil, err
	}
	var others []unique
	for _, ix := range indexes {
		u := unique{name: text(ix[0]), primary: text(ix[1]) == "pk", plain: number(ix[2]) == 0}
		cols, err := c.query(ctx, "SELECT cid, coll FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno", u.name)
		if err != nil {
			return nil, err
		}
		for _, r := range cols {
			if number(r[0]) < 0 {
				u.plain = false
				continue
			}
			u.columns = append(u.columns, int(number(r[0])))
			if !strings.EqualFold(text(r[1]), "BINARY") {
				u.collated = append(u.collated, int(number(r[0])))
			}
		}
		if u.primary {
			key.collated = u.collated
			continue
		}
		others = append(others, u)
	}
	if len(key.columns) > 0 {
		t.uniques = append(t.uniques, key)
	}
	t.uniques = append(t.uniques, others...)
	return t, nil
}

// rowID returns a name under which the table's row number can be used, "" where
// its columns hide all three or it has none.
func (t *table) rowID() string {
	if t.noRowID {
		return ""
	}
	for _, n := range []string{"rowid", "_rowid_", "oid"} {
		if _, hidden := t.byName[n]; !hidden {
			return n
		}
	}
	return ""
}

// alias returns the column that is another name of the row number, "" where there
// is none.
func (t *table) alias() string {
	out := ""
	for _, c := range t.columns {
		switch {
		case c.keyPlace == 0:
		case out != "" || !strings.EqualFold(c.declared, "INTEGER"):
			return ""
		default:
			out = c.name
		}
	}
	if t.noRowID {
		return ""
	}
	return out
}
