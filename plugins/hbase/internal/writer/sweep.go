package writer

import (
	"bytes"
	"errors"
	"io"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rowkey"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// sweep removes rows that are in the table and not in the source: all at a
// truncation, at the end of a snapshot range those in it that were not among its
// rows. Rows are read first, so what comes before must have been written.
func (a *apply) sweep(p *plan, c *sdk.Change, index int) error {
	if recs, err := a.flush(); err != nil {
		return err
	} else if len(recs) > 0 {
		return recs[0].Err
	}
	scan := rpc.Scan{Table: p.table, Columns: a.existing(p), NoCache: true}
	var in func(row []byte) (bool, error)
	if c.Op == sdk.Reconcile {
		seen := make(map[string]bool, len(c.Seen))
		e := a.encoder(p.table)
		for _, k := range c.Seen {
			row, err := e.keyOf(p, k)
			if err != nil {
				return err
			}
			seen[string(row)] = true
		}
		inside, err := a.bounds(p, c, &scan)
		if err != nil {
			return err
		}
		in = func(row []byte) (bool, error) {
			if seen[string(row)] {
				return false, nil
			}
			return inside(row)
		}
	}
	x := a.w.store.Scan(scan)
	defer x.Close(a.ctx)
	for {
		rows, err := x.Next(a.ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fault(err)
		}
		e := a.encoder(p.table)
		for _, cells := range rows {
			row := cells[0].Row
			if in != nil {
				if ok, err := in(row); err != nil || !ok {
					if err != nil {
						return err
					}
					continue
				}
			}
			ts, err := a.w.stamp(p, row, c)
			if err != nil {
				return err
			}
			e.remove(a.w, p, bytes.Clone(row), ts, index)
		}
		if len(e.muts) >= 4096 {
			if _, err := a.flush(); err != nil {
				return err
			}
		}
	}
	_, err := a.flush()
	return err
}

// existing names a column that every row has, so that a scan reads little.
func (a *apply) existing(p *plan) []rpc.Column {
	if len(p.columns) == 0 {
		return nil
	}
	if p.marker != nil {
		return []rpc.Column{{Family: []byte(p.families[0]), Qualifiers: [][]byte{p.marker}}}
	}
	c := &p.columns[p.schema.Key[0]]
	return []rpc.Column{{Family: c.family, Qualifiers: [][]byte{c.qualifier}}}
}

// bounds narrows the scan to a range where row keys are in the order of the key,
// and returns what tells the rows inside. Where the source orders text by a
// collation, only the whole table is a range that can be told.
func (a *apply) bounds(p *plan, c *sdk.Change, scan *rpc.Scan) (func(row []byte) (bool, error), error) {
	if len(c.Range.Lo) == 0 && len(c.Range.Hi) == 0 {
		return func([]byte) (bool, error) { return true, nil }, nil
	}
	for _, k := range p.schema.Key {
		if col := &p.schema.Columns[k]; !bytewise(col) {
			a.w.cfg.Log.Warn("rows that the source no longer has are left in the table: its order of text keys is not known here",
				"table", p.schema.Name(), "column", col.Name, "collation", col.Collation)
			return func([]byte) (bool, error) { return false, nil }, nil
		}
	}
	order := p.key
	if !order.Ordered() {
		var err error
		if order, err = rowkey.Parse(rowkey.Default(p.schema), p.schema); err != nil {
			return nil, err
		}
	}
	bound := func(key []byte) ([]byte, error) {
		if len(key) == 0 {
			return nil, nil
		}
		v, err := p.schema.KeyValues(key)
		if err != nil {
			return nil, err
		}
		return order.Encode(nil, v)
	}
	lo, err := bound(c.Range.Lo)
	if err != nil {
		return nil, err
	}
	hi, err := bound(c.Range.Hi)
	if err != nil {
		return nil, err
	}
	within := func(row []byte) bool {
		return (lo == nil || bytes.Compare(row, lo) > 0) && (hi == nil || bytes.Compare(row, hi) <= 0)
	}
	if order == p.key {
		scan.Start, scan.After = lo, lo != nil
		if hi != nil {
			scan.Stop = append(bytes.Clone(hi), 0)
		}
		return func(row []byte) (bool, error) { return within(row), nil }, nil
	}
	return func(row []byte) (bool, error) {
		parts, err := p.key.Decode(row)
		if err != nil {
			return false, nil // no row of ours
		}
		same, err := order.Again(parts)
		if err != nil {
			return false, sdk.Faultf(sdk.CodeRefused, "a snapshot range of %s: %v", p.schema.Name(), err).Suggest("use {column} in place of {column:text} in the row key")
		}
		return within(same), nil
	}, nil
}

// bytewise reports whether the source orders the column as its bytes.
func bytewise(c *batch.Column) bool {
	switch c.Type {
	case batch.Enum, batch.Set:
		return false // by number at the source
	case batch.String:
		switch c.Collation {
		case "", "binary", "C", "POSIX", "utf8mb4_bin", "utf8mb4_0900_bin", "utf8mb3_bin", "utf8_bin":
			return true
		}
		return false
	}
	return true
}
