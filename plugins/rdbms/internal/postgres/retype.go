package postgres

import (
	"context"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// changeColumn takes a change of type where the stored values become what the
// source makes of them. All others need the rows from the source again.
func (t *tx) changeColumn(ctx context.Context, have *table, d *batch.Change) error {
	if d.Column == nil {
		return sdk.Faultf(sdk.CodeInternal, "change of a column without its layout")
	}
	c := d.Column
	dl := newDialect(&batch.Schema{}, have)
	if d.OldName != "" && d.OldName != c.Name {
		if err := t.renameColumn(ctx, have, d); err != nil {
			return err
		}
	}
	at := have.Find(dl, c.Name)
	if at < 0 {
		return nil
	}
	if w := wireOf(c, &have.cols[at]); w.enc != nil && w.found == "" && kept(c, &have.cols[at]) {
		return nil
	}
	table, n, typ := tableName(have.Namespace, have.Name), quote(have.Columns[at].Name), typeOf(c)
	using, ok := conversion(have.cols[at].oid, c, n)
	if !ok {
		return sdk.Faultf(sdk.CodeRefused, "the type of column %s becomes %s (%s), and what the source makes of the values that are there cannot be said", c.Name, c.Type, c.Native).
			Suggest("drop the table in the target and take a new snapshot of it")
	}
	// A value that would change is found before it does.
	rows, err := t.s.query(ctx, "SELECT "+n+"::text FROM "+table+" WHERE "+n+" IS NOT NULL AND NOT ("+using.same+") LIMIT 1")
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		return sdk.Faultf(sdk.CodeRefused, "the type of column %s becomes %s (%s), and the value %s in the target does not fit it", c.Name, c.Type, c.Native, rows[0].text(0)).
			Suggest("drop the table in the target and take a new snapshot of it")
	}
	return t.s.run(ctx, "ALTER TABLE "+table+" ALTER COLUMN "+n+" TYPE "+typ+" USING "+using.expr)
}

// kept reports whether values that are there read as the source's do after the
// change: a scale that grows adds digits to them.
func kept(c *batch.Column, i *info) bool {
	if i.holdsText() {
		switch c.Type {
		case batch.String, batch.Enum, batch.Set, batch.Inet, batch.JSON:
			return true
		}
		return false
	}
	if c.Type == batch.Decimal {
		_, s, ok := i.digits()
		return ok && s == int(c.Scale)
	}
	return true
}

// use is how values become those of another type, and which of them stay the same.
type use struct{ expr, same string }

func conversion(from uint32, c *batch.Column, n string) (use, bool) {
	typ := typeOf(c)
	number := func(oid uint32) bool {
		switch oid {
		case oidBool, oidInt2, oidInt4, oidInt8, oidNumeric:
			return true
		}
		return false
	}
	num := n
	if from == oidBool {
		num = n + "::int"
	}
	switch c.Type {
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Decimal:
		if number(from) {
			return use{"(" + num + ")::" + typ, "(" + num + ")::" + typ + " = (" + num + ")"}, true
		}
	case batch.Float64:
		if from == oidFloat4 || from == oidInt2 || from == oidInt4 || from == oidBool {
			return use{"(" + num + ")::" + typ, "true"}, true
		}
	case batch.String, batch.Enum, batch.Set, batch.JSON:
		switch from {
		case oidInt2, oidInt4, oidInt8, oidNumeric, oidDate, oidJSON, oidText, oidVarchar:
			return use{n + "::text::" + typ, "true"}, true
		case oidBool:
			return use{n + "::int::text::" + typ, "true"}, true
		}
	case batch.DateTime:
		if from == oidDate || from == oidTimestamp {
			return use{n + "::" + typ, "true"}, true
		}
	case batch.Time:
		if from == oidTime || from == oidInterval {
			return use{n + "::" + typ, n + "::interval = " + n + "::" + typ + "::interval"}, true
		}
	case batch.Timestamp:
		if from == oidTimestampTZ {
			return use{n + "::" + typ, "true"}, true
		}
	}
	return use{}, false
}
