package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Gets reads the newest cells of many rows of a table, of whatever regions: one
// list for each row, empty where it is not there.
func (c *Client) Gets(ctx context.Context, table string, rows [][]byte, columns []Column) ([][]Cell, error) {
	out := make([][]Cell, len(rows))
	todo := make([]int, len(rows))
	for i := range todo {
		todo[i] = i
	}
	err := c.retry(ctx, fmt.Sprintf("get of %d rows of %s", len(rows), table), func(ctx context.Context) error {
		// The rows of one region at a time, and not too many of them.
		for len(todo) > 0 {
			r, err := c.Locate(ctx, table, rows[todo[0]])
			if err != nil {
				return err
			}
			var mine, rest []int
			for _, i := range todo {
				if len(mine) < 500 && r.Holds(rows[i]) {
					mine = append(mine, i)
				} else {
					rest = append(rest, i)
				}
			}
			body := message(nil).bytes(1, r.specifier())
			for k, i := range mine {
				g := Get{Row: rows[i], Columns: columns}
				body = body.bytes(3, message(nil).varint(1, uint64(k)).bytes(3, g.message()))
			}
			rep, err := c.once(ctx, r.Addr, clientService, &request{method: "Multi", param: message(nil).bytes(1, body)})
			if err == nil {
				err = parseGets(rep, mine, out)
			}
			if err != nil {
				if remedyOf(err) == relocate {
					c.cache.drop(r)
				}
				return err
			}
			todo = rest
		}
		return nil
	})
	return out, err
}

// parseGets reads the MultiResponse of one region's gets.
func parseGets(rep reply, mine []int, out [][]Cell) error {
	block, got := rep.cells, 0
	err := fields(rep.msg, func(f protowire.Number, _ uint64, b []byte) error {
		if f != 1 {
			return nil
		}
		return fields(b, func(f protowire.Number, _ uint64, b []byte) error {
			switch f {
			case 1:
				var result []byte
				index, exc, err := parseResultOrException(b)
				if err != nil {
					return err
				}
				if exc != nil {
					return exc
				}
				if index >= uint64(len(mine)) {
					return corrupt("index of a result")
				}
				if err := fields(b, func(f protowire.Number, _ uint64, b []byte) error {
					if f == 2 {
						result = b
					}
					return nil
				}); err != nil {
					return err
				}
				var cells []Cell
				if cells, block, err = parseResult(result, block); err != nil {
					return err
				}
				out[mine[index]] = cells
				got++
			case 2:
				var e pair
				if err := e.parse(b); err != nil {
					return err
				}
				return newRemoteError(string(e.first), e.second)
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return err
	case got != len(mine):
		return &connError{"multi", errors.New("no result for a get")}
	case len(block) > 0:
		return corrupt("bytes behind the cells of gets")
	}
	return nil
}
