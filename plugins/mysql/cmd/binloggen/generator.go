package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlogtest"
)

// Types of columns, as the protocol numbers them, and the collation utf8mb4_bin.
const (
	typeBigint  = 8
	typeVarchar = 15
	utf8mb4Bin  = 46
)

// perEvent is how many bytes of rows go into one event, as a server does it.
const perEvent = 8 << 10

type table struct {
	*binlogtest.Table
}

type generator struct {
	w      *binlogtest.Writer
	tables map[string]*table
	number uint64
}

func (g *generator) define(l *line) error {
	t := &binlogtest.Table{ID: uint64(100 + len(g.tables)), Database: l.Database, Name: l.Table}
	for _, c := range l.Columns {
		col := binlogtest.Column{Name: c.Name}
		switch c.Type {
		case "bigint":
			col.Type = typeBigint
		case "varchar":
			col.Type, col.Meta, col.Collation = typeVarchar, []byte{255, 0}, utf8mb4Bin
		default:
			return fmt.Errorf("table %s, column %s: found type %q, expected bigint or varchar", l.Table, c.Name, c.Type)
		}
		t.Columns = append(t.Columns, col)
	}
	for _, name := range l.Key {
		i := slices.IndexFunc(l.Columns, func(c column) bool { return c.Name == name })
		if i < 0 {
			return fmt.Errorf("table %s: its key names column %s, which it has not", l.Table, name)
		}
		t.Key = append(t.Key, byte(i))
	}
	g.tables[l.Table] = &table{t}
	return nil
}

// transaction writes changes; those of one kind to one table that follow one
// another share events.
func (g *generator) transaction(changes []change) error {
	g.number++
	g.w.Time++
	g.w.GTID(g.number)
	g.w.Begin()
	var open *table
	var op string
	var rows []byte
	flush := func() {
		if len(rows) > 0 {
			g.w.Map(open.Table)
			g.w.Rows(kinds[op], open.Table, rows)
			rows = rows[:0]
		}
	}
	for i := range changes {
		c := &changes[i]
		t := g.tables[c.Table]
		if t == nil || kinds[c.Op] == 0 {
			return fmt.Errorf("change %d: found op %q of table %q, expected insert, update or delete of a table that was defined", i+1, c.Op, c.Table)
		}
		if t != open || c.Op != op || len(rows) >= perEvent {
			flush()
			open, op = t, c.Op
		}
		var err error
		for _, image := range images(c) {
			if rows, err = t.row(rows, image); err != nil {
				return fmt.Errorf("change %d: %w", i+1, err)
			}
		}
	}
	flush()
	g.w.Commit(g.number)
	return nil
}

var kinds = map[string]binlog.Type{"insert": binlog.WriteRowsV2, "update": binlog.UpdateRowsV2, "delete": binlog.DeleteRowsV2}

func images(c *change) [][]any {
	switch c.Op {
	case "insert":
		return [][]any{c.After}
	case "delete":
		return [][]any{c.Before}
	}
	return [][]any{c.Before, c.After}
}

// row appends the bitmap of NULLs and the values of one image.
func (t *table) row(b []byte, values []any) ([]byte, error) {
	if len(values) != len(t.Columns) {
		return nil, fmt.Errorf("table %s: found %d values, expected %d", t.Name, len(values), len(t.Columns))
	}
	at := len(b)
	b = append(b, make([]byte, (len(values)+7)/8)...)
	for i, v := range values {
		c := &t.Columns[i]
		if v == nil {
			b[at+i/8] |= 1 << (i % 8)
			continue
		}
		number, isNumber := v.(json.Number)
		text, isText := v.(string)
		n, err := number.Int64()
		switch {
		case c.Type == typeBigint && isNumber && err == nil:
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		case c.Type == typeVarchar && isText && len(text) <= 255:
			b = append(append(b, byte(len(text))), text...)
		default:
			return nil, fmt.Errorf("table %s, column %s: found %v", t.Name, c.Name, v)
		}
	}
	return b, nil
}
