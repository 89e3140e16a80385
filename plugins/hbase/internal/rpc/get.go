package rpc

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"
)

// Column names a family, and qualifiers in it; none = all.
type Column struct {
	Family     []byte
	Qualifiers [][]byte
}

// TimeRange holds timestamps of From and above, below To; To 0 = no end.
type TimeRange struct{ From, To uint64 }

// Get says what to read of a row. The zero value reads the newest version of
// every column.
type Get struct {
	Row      []byte
	Columns  []Column
	Range    TimeRange
	Versions int
}

func appendColumns(m message, field protowire.Number, cols []Column) message {
	for i := range cols {
		c := message(nil).bytes(1, cols[i].Family)
		for _, q := range cols[i].Qualifiers {
			c = c.bytes(2, q)
		}
		m = m.bytes(field, c)
	}
	return m
}

func (t TimeRange) message() message {
	m := message(nil).varint(1, t.From)
	if t.To > 0 {
		m = m.varint(2, t.To)
	}
	return m
}

func (g *Get) message() message {
	m := appendColumns(message(nil).bytes(1, g.Row), 2, g.Columns)
	if g.Range != (TimeRange{}) {
		m = m.bytes(5, g.Range.message())
	}
	if g.Versions > 1 {
		m = m.varint(6, uint64(g.Versions))
	}
	return m
}

// Get reads one row; no cells = it is not there.
func (c *Client) Get(ctx context.Context, table string, g Get) ([]Cell, error) {
	rep, err := c.onRegion(ctx, table, g.Row, "get", clientService, func(r *Region) *request {
		return &request{method: "Get", param: message(nil).bytes(1, r.specifier()).bytes(2, g.message())}
	})
	if err != nil {
		return nil, err
	}
	var out []Cell
	err = fields(rep.msg, func(f protowire.Number, _ uint64, b []byte) (err error) {
		if f == 1 {
			var rest []byte
			out, rest, err = parseResult(b, rep.cells)
			if err == nil && len(rest) > 0 {
				err = corrupt("bytes behind the cells of a get")
			}
		}
		return err
	})
	return out, err
}

// parseResult reads a Result, whose cells are in it or, as many as it says, in the
// cell block; it returns what of the block is left.
func parseResult(data, block []byte) (cells []Cell, rest []byte, err error) {
	n := 0
	err = fields(data, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			c, err := parseCell(b)
			if err != nil {
				return err
			}
			cells = append(cells, c)
		case 2:
			n = int(int32(v))
		}
		return nil
	})
	for i := 0; err == nil && i < n; i++ {
		var c Cell
		if c, block, err = CutCell(block, false); err == nil {
			cells = append(cells, c)
		}
	}
	return cells, block, err
}

// parseCell reads a cell in a message.
func parseCell(data []byte) (c Cell, err error) {
	err = fields(data, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			c.Row = b
		case 2:
			c.Family = b
		case 3:
			c.Qualifier = b
		case 4:
			c.Timestamp = v
		case 5:
			c.Type = CellType(v)
		case 6:
			c.Value = b
		case 7:
			c.Tags = b
		}
		return nil
	})
	return c, err
}
