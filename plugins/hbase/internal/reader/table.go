package reader

import (
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rowkey"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/value"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Column is a part of the row key, or a cell.
type Column struct {
	Name  string `config:"name" required:"true" doc:"name of the column"`
	Type  string `config:"type" default:"string" doc:"bool, int8 to int64, uint8 to uint64, float32, float64, decimal, string, bytes, json, date, datetime, timestamp"`
	Scale int    `config:"scale" default:"0" min:"0" max:"30" doc:"digits after the point"`
	Cell  string `config:"cell" doc:"family:qualifier; left out = family d, the column's name"`
}

// Table says how rows of an HBase table are given.
type Table struct {
	Name     string   `config:"name" doc:"namespace.table of the rows; left out = as in HBase"`
	Key      []Column `config:"key" required:"true" doc:"columns of the row key"`
	RowKey   string   `config:"rowKey" doc:"template of the row key, as the writer has it; left out = the columns of key, order-preserving"`
	Columns  []Column `config:"columns" default:"[]" doc:"columns from cells"`
	Encoding string   `config:"encoding" default:"text" enum:"text|binary|phoenix" doc:"how values became bytes"`
	Cells    string   `config:"cells" default:"all" enum:"all|named" doc:"what makes a row be there: any cell, or one that columns names; named reads no others"`
	From     uint64   `config:"from" default:"0" doc:"the scan gives cells with this timestamp and later ones alone, as parts of rows"`
	Before   uint64   `config:"before" default:"0" doc:"the scan gives cells before this timestamp alone, as parts of rows; 0 = all"`
}

// source is a table that is read.
type source struct {
	name     string // in HBase
	schema   *batch.Schema
	key      *rowkey.Template
	cells    []cellRef // beside the columns; those of the key are empty
	families []string
	encoding value.Encoding
	wanted   []rpc.Column // nil = all cells
	times    rpc.TimeRange
}

type cellRef struct{ family, qualifier []byte }

func newSource(name string, t Table, id uint32, cluster string) (*source, error) {
	bad := func(format string, args ...any) error {
		return sdk.Faultf(sdk.CodeInvalidConfig, "tables."+name+": "+format, args...)
	}
	s := &source{name: name, encoding: value.Encoding(t.Encoding), schema: &batch.Schema{ID: id, Version: 1, Source: cluster, PrimaryKey: true}}
	if s.encoding == "" {
		s.encoding = value.Text
	}
	full := t.Name
	if full == "" {
		full = strings.Replace(name, ":", ".", 1)
	}
	s.schema.Table = full
	if ns, table, ok := strings.Cut(full, "."); ok {
		s.schema.Namespace, s.schema.Table = ns, table
	}
	add := func(c Column, flags batch.ColumnFlags) error {
		typ, ok := value.Types[c.Type]
		if c.Type == "" {
			typ, ok = batch.String, true
		}
		if !ok {
			return bad("column %s: type %q is not known", c.Name, c.Type)
		}
		s.schema.Columns = append(s.schema.Columns, batch.Column{Name: c.Name, Type: typ, Scale: uint32(c.Scale), Flags: flags})
		return nil
	}
	for i, c := range t.Key {
		if err := add(c, 0); err != nil {
			return nil, err
		}
		s.schema.Key = append(s.schema.Key, i)
		s.cells = append(s.cells, cellRef{})
	}
	for _, c := range t.Columns {
		if err := add(c, batch.Nullable); err != nil {
			return nil, err
		}
		cell := c.Cell
		if cell == "" {
			cell = "d:" + c.Name
		}
		f, q, ok := strings.Cut(cell, ":")
		if !ok || f == "" {
			return nil, bad("column %s: cell %q, expected family:qualifier", c.Name, cell)
		}
		s.cells = append(s.cells, cellRef{[]byte(f), []byte(q)})
		if !slices.Contains(s.families, f) {
			s.families = append(s.families, f)
		}
	}
	spec := t.RowKey
	if spec == "" {
		spec = rowkey.Default(s.schema)
	}
	var err error
	if s.key, err = rowkey.Parse(spec, s.schema); err != nil {
		return nil, bad("%v", err)
	}
	s.times = rpc.TimeRange{From: t.From, To: t.Before}
	if t.Cells == "named" {
		for _, f := range s.families {
			c := rpc.Column{Family: []byte(f)}
			for _, at := range s.cells {
				if string(at.family) == f {
					c.Qualifiers = append(c.Qualifiers, at.qualifier)
				}
			}
			s.wanted = append(s.wanted, c)
		}
		if len(s.wanted) == 0 {
			return nil, bad("cells: named, but columns names none")
		}
	}
	return s, nil
}

// query returns a scan of what makes rows.
func (s *source) query() rpc.Scan {
	return rpc.Scan{Table: s.name, Columns: s.wanted, Range: s.times}
}

// ranged reports whether the scan gives parts of rows.
func (s *source) ranged() bool { return s.times != rpc.TimeRange{} }

// wants reports whether a cell, or a tombstone, concerns what makes rows.
func (s *source) wants(c *rpc.Cell) bool {
	return s.wanted == nil || slices.ContainsFunc(s.wanted, func(w rpc.Column) bool {
		return string(w.Family) == string(c.Family) &&
			(len(c.Qualifier) == 0 || slices.ContainsFunc(w.Qualifiers, func(q []byte) bool { return string(q) == string(c.Qualifier) }))
	})
}
