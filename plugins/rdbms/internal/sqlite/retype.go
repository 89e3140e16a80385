package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// changeColumn takes a change of type where the stored values read the same
// under the new one, or can be rewritten as the source would print them. All
// others need the rows from the source again.
func (t *tx) changeColumn(have *table, d *batch.Change, old *batch.Column) error {
	if d.Column == nil {
		return sdk.Faultf(sdk.CodeInternal, "change of a column without its layout")
	}
	from := d.Column.Name
	if d.OldName != "" && fold(d.OldName) != fold(from) {
		from = d.OldName
		if err := t.renameColumn(have, d); err != nil {
			return err
		}
	}
	at, ok := have.byName[fold(from)]
	if !ok || old != nil && old.Type == d.Column.Type && old.Scale == d.Column.Scale && slices.Equal(old.Values, d.Column.Values) && classOf(old) == classOf(d.Column) {
		return nil
	}
	col, table, n := &have.columns[at], quote(have.name), quote(d.Column.Name)
	r := retype(d.Column, n)
	rows, err := t.c.query(bg, "SELECT "+n+" FROM "+table+" WHERE "+n+" IS NOT NULL AND NOT ("+r.accepts+") LIMIT 1")
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		return sdk.Faultf(sdk.CodeRefused, "the type of column %s becomes %s (%s), and the value %v in the target cannot be rewritten as the source prints it", d.Column.Name, d.Column.Type, d.Column.Native, rows[0][0]).
			Suggest("drop the table in the target and take a new snapshot of it")
	}
	// A key column stays as it is, SQLite cannot change it in place: what it cannot
	// hold is refused when it comes.
	if fits(d.Column, col.declared, have.strict) && (col.keyPlace > 0 || !narrow(d.Column, col.declared, have.strict)) {
		if r.expr == n {
			return nil
		}
		return t.c.run("UPDATE " + table + " SET " + n + " = " + r.expr)
	}
	if col.keyPlace > 0 {
		return sdk.Faultf(sdk.CodeRefused, "the type of key column %s becomes %s (%s), which SQLite cannot change in place", d.Column.Name, d.Column.Type, d.Column.Native).
			Suggest("drop the table in the target and take a new snapshot of it")
	}
	add := *d.Column
	add.Name += "_datalink_new"
	tmp := quote(add.Name)
	for _, q := range []string{
		"ALTER TABLE " + table + " ADD COLUMN " + columnText(&add),
		"UPDATE " + table + " SET " + tmp + " = " + r.expr,
		"ALTER TABLE " + table + " DROP COLUMN " + n,
		"ALTER TABLE " + table + " RENAME COLUMN " + tmp + " TO " + n,
	} {
		if err := t.c.run(q); err != nil {
			return err
		}
	}
	return nil
}

// rewrite says how the stored values of a column become those of a new type:
// which of them can, as a condition, and by which expression.
type rewrite struct{ accepts, expr string }

func retype(c *batch.Column, n string) rewrite {
	is := func(types string) string { return "typeof(" + n + ") IN (" + types + ")" }
	asText := "CASE typeof(" + n + ") WHEN 'integer' THEN CAST(" + n + " AS TEXT) ELSE " + n + " END"
	switch c.Type {
	case batch.String:
		return rewrite{is("'text','integer'"), asText}
	case batch.Enum, batch.Set, batch.JSON, batch.Date, batch.Year, batch.UUID, batch.Inet:
		return rewrite{is("'text'"), n}
	case batch.Bytes, batch.Geometry:
		return rewrite{is("'blob'"), n}
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Bool:
		return rewrite{is("'integer'"), n}
	case batch.Uint64:
		return rewrite{is("'integer','text'") + " AND " + n + " NOT GLOB '*[^0-9]*'", n}
	case batch.Decimal, batch.Time, batch.DateTime, batch.Timestamp:
		types := "'text'"
		if c.Type == batch.Decimal {
			types = "'text','integer'"
		}
		scale := int(c.Scale)
		have := fmt.Sprintf("(CASE instr(%s,'.') WHEN 0 THEN 0 ELSE length(%[1]s)-instr(%[1]s,'.') END)", n)
		// NaN and infinities have no digits; more digits than the new type has would be rounded.
		r := rewrite{fmt.Sprintf("%s AND (%s GLOB '*[a-zA-Z]*' OR %s <= %d)", is(types), n, have, scale), asText}
		if scale > 0 {
			r.expr = fmt.Sprintf("CASE WHEN %[1]s GLOB '*[a-zA-Z]*' THEN %[1]s ELSE (%[2]s) || CASE instr(%[1]s,'.') WHEN 0 THEN '.' ELSE '' END || substr('%[3]s',1,%[4]d-%[5]s) END",
				n, asText, strings.Repeat("0", scale), scale, have)
		}
		return r
	}
	return rewrite{"0", n}
}
