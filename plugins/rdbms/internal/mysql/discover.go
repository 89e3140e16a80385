package mysql

import (
	"context"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Discover lists the tables of all databases, without those of the server and of
// the writer itself.
func (w *Writer) Discover(ctx context.Context, out func(*batch.Schema) error) error {
	s, err := w.connect(ctx, true)
	if err != nil {
		return w.fault("connect", err)
	}
	defer s.close()
	rows, err := s.query(ctx, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE'"+
		" AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') AND TABLE_NAME NOT LIKE 'datalink\\_%' ORDER BY 1, 2")
	if err != nil {
		return w.fault("discover", err)
	}
	for i, r := range rows {
		t, err := w.describe(ctx, s, r[0].text(), r[1].text())
		if err != nil {
			return w.fault("discover", err)
		}
		if t == nil {
			continue // dropped meanwhile
		}
		if err := out(sourceOf(t, uint32(i+1))); err != nil {
			return err
		}
	}
	return nil
}

// sourceOf describes a table as a source would.
func sourceOf(t *target.Table, id uint32) *batch.Schema {
	s := &batch.Schema{ID: id, Namespace: t.Namespace, Table: t.Name}
	for i := range t.Columns {
		c := &t.Columns[i]
		col := batch.Column{Name: c.Name, Native: c.Type, Charset: c.Charset, Collation: c.Collation}
		logical(&col, parseType(c.Type))
		if c.Nullable {
			col.Flags |= batch.Nullable
		}
		if c.Generated {
			col.Flags |= batch.Generated
		}
		s.Columns = append(s.Columns, col)
	}
	for _, u := range t.Uniques {
		switch {
		case u.Primary:
			s.Key, s.PrimaryKey = u.Columns, true
		case u.Plain:
			s.Uniques = append(s.Uniques, batch.Index{Name: u.Name, Columns: u.Columns})
			if len(s.Key) == 0 && !slices.ContainsFunc(u.Columns, func(i int) bool { return t.Columns[i].Nullable }) {
				s.Key = u.Columns
			}
		}
	}
	return s
}

// logical fills in the batch type of a declared one.
func logical(c *batch.Column, d declared) {
	ints := map[string][2]batch.Type{
		"tinyint": {batch.Int8, batch.Uint8}, "smallint": {batch.Int16, batch.Uint16}, "mediumint": {batch.Int32, batch.Uint32},
		"int": {batch.Int32, batch.Uint32}, "bigint": {batch.Int64, batch.Uint64},
	}
	if t, ok := ints[d.base]; ok {
		c.Type = t[0]
		if d.unsigned {
			c.Type = t[1]
		}
		return
	}
	n := uint32(max(d.n, 0))
	switch d.base {
	case "float":
		c.Type = batch.Float32
	case "double":
		c.Type = batch.Float64
	case "decimal":
		c.Type, c.Precision, c.Scale = batch.Decimal, n, uint32(max(d.scale, 0))
	case "bit":
		c.Type, c.Length = batch.Bit, n
	case "date":
		c.Type = batch.Date
	case "time":
		c.Type, c.Scale = batch.Time, n
	case "datetime":
		c.Type, c.Scale = batch.DateTime, n
	case "timestamp":
		c.Type, c.Scale = batch.Timestamp, n
	case "year":
		c.Type = batch.Year
	case "json":
		c.Type = batch.JSON
	case "enum":
		c.Type, c.Values = batch.Enum, d.labels
	case "set":
		c.Type, c.Values = batch.Set, d.labels
	case "uuid":
		c.Type = batch.UUID
	case "vector":
		c.Type, c.Length = batch.Vector, n
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		c.Type, c.Length = batch.String, n
	case "inet4", "inet6":
		c.Type = batch.Inet
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		c.Type, c.Length = batch.Bytes, n
	default:
		if strings.Contains("geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection geomcollection", d.base) {
			c.Type = batch.Geometry
			return
		}
		c.Type = batch.Native
	}
}
