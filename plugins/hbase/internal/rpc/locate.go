package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// cache keeps where regions are, by table and first row.
type cache struct {
	mu     sync.Mutex
	tables map[string][]*Region
	meta   string
}

func (c *cache) find(table string, row []byte) *Region {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.tables[table]
	i, ok := slices.BinarySearchFunc(list, row, func(r *Region, row []byte) int { return bytes.Compare(r.Start, row) })
	if !ok {
		i--
	}
	if i >= 0 && list[i].Holds(row) {
		return list[i]
	}
	return nil
}

// put adds a region and removes those that it overlaps: they were split or merged.
func (c *cache) put(r *Region) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables == nil {
		c.tables = map[string][]*Region{}
	}
	list := slices.DeleteFunc(slices.Clone(c.tables[r.Table]), func(o *Region) bool {
		return (len(r.End) == 0 || bytes.Compare(o.Start, r.End) < 0) && (len(o.End) == 0 || bytes.Compare(r.Start, o.End) < 0)
	})
	i, _ := slices.BinarySearchFunc(list, r.Start, func(o *Region, start []byte) int { return bytes.Compare(o.Start, start) })
	c.tables[r.Table] = slices.Insert(list, i, r)
}

// drop forgets a region, if it is still the one that is known.
func (c *cache) drop(r *Region) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables[r.Table] = slices.DeleteFunc(slices.Clone(c.tables[r.Table]), func(o *Region) bool { return o == r })
}

func (c *cache) forget(table string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tables, table)
}

// Locate returns the region that holds the row, from the cache where it is known.
func (c *Client) Locate(ctx context.Context, table string, row []byte) (*Region, error) {
	if r := c.cache.find(table, row); r != nil {
		return r, nil
	}
	// The region before "table,row,:" in hbase:meta: ids are digits, which are less.
	key := fmt.Appendf(nil, "%s,%s,:", table, row)
	rows, err := c.metaRows(ctx, scanSpec{start: key, reversed: true, stop: []byte(table + ",,")}, 1)
	if err != nil {
		return nil, err
	}
	for _, cells := range rows {
		r, err := parseRegion(cells)
		if err != nil {
			return nil, err
		}
		switch {
		case r == nil || r.Table != table:
		case !r.Holds(row), r.offline, r.Addr == "":
			// Between the states of a split, a merge or a move.
			return nil, &connError{"hbase:meta", fmt.Errorf("region of row %q of %s is in transition (%s, %s)", row, table, r.Name, r.State)}
		default:
			c.cache.put(r)
			return r, nil
		}
	}
	return nil, fmt.Errorf("locate row %q of %s: %w", row, table, ErrNoTable)
}

// Regions returns all regions of a table in order, as hbase:meta has them now.
func (c *Client) Regions(ctx context.Context, table string) (out []*Region, err error) {
	err = c.retry(ctx, "regions of "+table, func(ctx context.Context) error {
		out = nil
		start, from := []byte(table+",,"), true
		for {
			rows, err := c.metaRows(ctx, scanSpec{start: start, after: !from}, 200)
			if err != nil {
				return err
			}
			for _, cells := range rows {
				r, err := parseRegion(cells)
				if err != nil {
					return err
				}
				if r != nil && r.Table != table {
					return chained(table, out)
				}
				if r != nil && !r.offline && !r.split && r.replica == 0 {
					out = append(out, r)
				}
				start, from = cells[0].Row, false
			}
			if len(rows) == 0 { // fewer than were asked for may come at any time
				return chained(table, out)
			}
		}
	})
	return out, err
}

// chained reports an error while the regions leave gaps: the table is in transition.
func chained(table string, regions []*Region) error {
	if len(regions) == 0 {
		return fmt.Errorf("regions of %s: %w", table, ErrNoTable)
	}
	for i, r := range regions {
		if r.Addr == "" || i > 0 && !bytes.Equal(regions[i-1].End, r.Start) || i == 0 && len(r.Start) > 0 {
			return &connError{"hbase:meta", fmt.Errorf("regions of %s are in transition near %q", table, r.Start)}
		}
	}
	if len(regions[len(regions)-1].End) > 0 {
		return &connError{"hbase:meta", fmt.Errorf("the last region of %s is in transition", table)}
	}
	return nil
}

// scanSpec is a scan of hbase:meta.
type scanSpec struct {
	start, stop []byte
	after       bool // start itself is left out
	reversed    bool
}

// metaRows reads up to n rows of hbase:meta in one call.
func (c *Client) metaRows(ctx context.Context, s scanSpec, n int) ([][]Cell, error) {
	c.cache.mu.Lock()
	addr := c.cache.meta
	c.cache.mu.Unlock()
	if addr == "" {
		var err error
		if addr, err = c.reg.meta(ctx); err != nil {
			return nil, err
		}
		c.cache.mu.Lock()
		c.cache.meta = addr
		c.cache.mu.Unlock()
	}
	scan := message(nil).bytes(1, message(nil).string(1, "info")).bytes(3, s.start)
	if len(s.stop) > 0 {
		scan = scan.bytes(4, s.stop)
	}
	scan = scan.bool(15, s.reversed).bool(21, !s.after)
	if s.reversed {
		scan = scan.bool(22, true)
	}
	param := message(nil).bytes(1, metaRegion.specifier()).bytes(2, scan).varint(4, uint64(n)).bool(5, true).varint(11, uint64(n))
	rep, err := c.once(ctx, addr, clientService, &request{method: "Scan", param: param, priority: 200})
	if err == nil {
		var res scanReply
		if err = res.parse(rep); err == nil {
			return res.rows, nil
		}
	}
	if remedyOf(err) == relocate && !errors.Is(err, context.Canceled) {
		c.cache.mu.Lock()
		if c.cache.meta == addr {
			c.cache.meta = ""
		}
		c.cache.mu.Unlock()
	}
	return nil, fmt.Errorf("read hbase:meta: %w", err)
}
