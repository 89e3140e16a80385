package writer

import (
	"errors"
	"io"
	"strings"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/value"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// alter is a schema change of the source. HBase has no columns to add, but rows
// that the source filled with a default have it here too, and a dropped table has
// no rows. What only the source knows stops the task.
func (a *apply) alter(c *sdk.Change, index int) error {
	d := c.DDL
	if a.w.cfg.DDL == Ignore {
		return nil
	}
	name := d.Table
	if d.Namespace != "" {
		name = d.Namespace + "." + d.Table
	}
	refuse := func(why, advice string) error {
		return sdk.Faultf(sdk.CodeRefused, "schema change of %s, %q: %s", name, d.Statement, why).Suggest("%s", advice)
	}
	const byHand = "do in HBase by hand what it means for the rows that are there, then run once with ddl: ignore"
	if a.w.cfg.DDL == Stop {
		return refuse("ddl is stop", byHand)
	}
	switch d.Kind {
	case batch.DDLCreateTable, batch.DDLAddIndex, batch.DDLDropIndex:
		return nil
	case batch.DDLDropColumn:
		a.w.cfg.Log.Info("a column was dropped; its cells stay in the rows that have them", "table", name, "column", columnName(d))
		return nil
	case batch.DDLDropTable:
		if p := a.w.planNamed(name); p != nil {
			return a.sweep(p, &sdk.Change{Op: sdk.Truncate, Kind: c.Kind, Schema: p.schema, Version: c.Version, Committed: c.Committed}, index)
		}
		return a.dropUnknown(c, name, index)
	case batch.DDLRenameColumn:
		if p := a.w.planNamed(name); p != nil && d.Column != nil && a.w.cfg.at(name, d.Column.Name) == a.w.cfg.at(name, d.OldName) {
			return nil // both names go to one cell
		}
		return refuse("the cells of the old name would have to move", "map both names to one cell: tables."+name+".columns")
	case batch.DDLChangeColumn:
		if d.Column != nil && a.w.cfg.encodingOf(name) != value.Text {
			return refuse("cells are written in the type of their column, and those that are there have the old one", byHand)
		}
		a.w.cfg.Log.Warn("a column changed its type; cells that are there stay as they are", "table", name, "column", columnName(d))
		return nil
	case batch.DDLAddColumn:
		fill, why := a.w.cfg.filling(name, d.Column)
		if why != "" {
			return refuse(why, byHand)
		}
		if fill == nil {
			return nil
		}
		return a.fill(c, name, *fill, index)
	}
	return refuse("what it does to rows is not known", byHand)
}

func columnName(d *batch.Change) string {
	if d.Column == nil {
		return ""
	}
	return d.Column.Name
}

// at returns where a column goes.
func (c *Config) at(table, column string) string {
	r := c.Tables[table]
	return or(r.Columns[column], or(r.Family, c.Family)+":"+column)
}

func (c *Config) encodingOf(table string) value.Encoding {
	return value.Encoding(or(c.Tables[table].Encoding, c.Encoding))
}

func (w *Writer) planNamed(name string) *plan {
	var found *plan
	for s, p := range w.plans {
		if s.Name() == name && (found == nil || s.Version >= found.schema.Version) {
			found = p
		}
	}
	return found
}

// filling returns what rows that are there hold in a new column; nil = NULL. Why
// says what stands against knowing it.
func (c *Config) filling(table string, col *batch.Column) (fill *string, why string) {
	if col == nil {
		return nil, "the new column is not described"
	}
	text := strings.TrimSpace(col.Default)
	quoted := len(text) >= 2 && text[0] == '\'' && text[len(text)-1] == '\''
	switch {
	case col.Flags&(batch.Generated|batch.Virtual) != 0:
		return nil, "the new column is computed by the source"
	case col.Flags&batch.AutoIncrement != 0:
		return nil, "the new column counts by itself"
	case text == "" || strings.EqualFold(text, "NULL"):
		if col.Flags&batch.Nullable != 0 {
			return nil, ""
		}
		switch col.Type {
		case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Float32, batch.Float64:
			text = "0"
		case batch.Decimal:
			text = "0"
			if col.Scale > 0 {
				text += "." + strings.Repeat("0", int(col.Scale))
			}
		case batch.String, batch.Bytes:
			text = ""
		default:
			return nil, "the new column has no default, and what stands for none in its type is the source's business"
		}
	case quoted:
		var b strings.Builder
		in := text[1 : len(text)-1]
		for i := 0; i < len(in); i++ {
			if i+1 < len(in) && (in[i] == '\'' && in[i+1] == '\'' || in[i] == '\\') {
				i++
			}
			b.WriteByte(in[i])
		}
		text = b.String()
	case strings.Trim(text, "+-0123456789.") != "":
		return nil, "the default " + text + " is computed by the source"
	}
	if c.encodingOf(table) != value.Text {
		return nil, "the default would have to be written in another encoding than text"
	}
	switch col.Type {
	case batch.Decimal, batch.Time, batch.DateTime, batch.Timestamp:
		if _, frac, _ := strings.Cut(text, "."); len(frac) < int(col.Scale) {
			if len(frac) == 0 && !strings.Contains(text, ".") {
				text += "."
			}
			text += strings.Repeat("0", int(col.Scale)-len(frac))
		}
	case batch.Bit:
		return nil, "the default of a column of bits"
	}
	return &text, ""
}

// fill writes a new column's default into the rows that are there, at the version
// of the change: what is written to the column later is above it.
func (a *apply) fill(c *sdk.Change, name, text string, index int) error {
	if recs, err := a.flush(); err != nil {
		return err
	} else if len(recs) > 0 {
		return recs[0].Err
	}
	p := a.w.planNamed(name)
	if p == nil && c.DDL.Schema != nil {
		var err error
		if p, err = newPlan(&a.w.cfg, c.DDL.Schema); err != nil {
			return err
		}
		if err := a.w.ready(a.ctx, p); err != nil {
			return err
		}
	}
	if p == nil {
		return sdk.Faultf(sdk.CodeRefused, "schema change of %s, %q: the layout of the table is not known", name, c.DDL.Statement)
	}
	family, qualifier, _ := strings.Cut(a.w.cfg.at(name, c.DDL.Column.Name), ":")
	x := a.w.store.Scan(rpc.Scan{Table: p.table, Columns: a.existing(p), NoCache: true})
	defer x.Close(a.ctx)
	for {
		rows, err := x.Next(a.ctx)
		if errors.Is(err, io.EOF) {
			_, err := a.flush()
			return err
		}
		if err != nil {
			return fault(err)
		}
		e := a.encoder(p.table)
		for _, cells := range rows {
			row, _ := e.keep(func(dst []byte) ([]byte, error) { return append(dst, cells[0].Row...), nil })
			ts, err := a.w.stamp(p, row, c)
			if err != nil {
				return err
			}
			m := e.begin(row)
			m.Put([]byte(family), []byte(qualifier), ts, []byte(text))
			e.end(a.w, &m, index)
		}
		if _, err := a.flush(); err != nil {
			return err
		}
	}
}

// dropUnknown removes the rows of a dropped table that this run has not met: an
// earlier run may have written them.
func (a *apply) dropUnknown(c *sdk.Change, name string, index int) error {
	table := a.w.cfg.Tables[name].Table
	if table == "" {
		table = strings.Replace(name, ".", ":", 1)
	}
	t, err := a.w.store.Describe(a.ctx, table)
	if errors.Is(err, rpc.ErrNoTable) {
		return nil
	}
	if err != nil {
		return fault(err)
	}
	p := &plan{schema: &batch.Schema{Table: name}, table: table}
	for _, f := range t.Families {
		p.families = append(p.families, f.Name)
	}
	if a.w.cfg.Shared {
		return sdk.Faultf(sdk.CodeRefused, "table %s was dropped at the source, and others have columns in the families of %s", name, table).
			Suggest("delete its columns by hand, then run once with ddl: ignore")
	}
	return a.sweep(p, &sdk.Change{Op: sdk.Truncate, Kind: c.Kind, Schema: p.schema, Version: c.Version, Committed: c.Committed}, index)
}
