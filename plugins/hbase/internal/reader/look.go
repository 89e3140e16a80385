package reader

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var (
	_ sdk.RangeReader = (*Reader)(nil)
	_ sdk.KeyReader   = (*Reader)(nil)
)

const lookRows = 1000

// lookup finds the source of a schema that was given out.
func (r *Reader) lookup(s *batch.Schema) (*source, error) {
	for _, src := range r.sources {
		if src.schema.Name() != s.Name() {
			continue
		}
		if len(src.schema.Columns) != len(s.Columns) {
			return nil, sdk.Faultf(sdk.CodeSchemaMismatch, "table %s has %d columns here, %d are asked for", s.Name(), len(src.schema.Columns), len(s.Columns))
		}
		own := *src
		own.schema = s
		return &own, nil
	}
	return nil, sdk.Faultf(sdk.CodeUnknownTable, "table %s is none of this reader's", s.Name())
}

func (s *source) rowKey(key []byte) ([]byte, error) {
	v, err := s.schema.KeyValues(key)
	if err != nil {
		return nil, err
	}
	row, err := s.key.Encode(nil, v)
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeUnfit, "key of %s: %v", s.schema.Name(), err)
	}
	return row, nil
}

// here is the place of rows that are read now: what was handed over is in them, and
// what comes later is read, or was written, later.
func (r *Reader) here() sdk.Position {
	p := sdk.Position{Source: r.Source(r.next.Load())}
	p.Format, p.Version = r.PositionFormat()
	return p
}

// ReadRange implements sdk.RangeReader. Rows come in the order of row keys; where
// the template is not that of the key's columns one after the other, bounds are
// taken in that order too.
func (r *Reader) ReadRange(ctx context.Context, q sdk.Range, out *batch.Builder) (p sdk.Placed, err error) {
	src, err := r.lookup(q.Schema)
	if err != nil {
		return p, err
	}
	p.Low = r.here()
	scan := rpc.Scan{Table: src.name, Columns: src.wanted, Rows: q.Rows}
	if len(q.Lo) > 0 {
		if scan.Start, err = src.rowKey(q.Lo); err != nil {
			return p, err
		}
		scan.After = true
	}
	if len(q.Hi) > 0 {
		hi, err := src.rowKey(q.Hi)
		if err != nil {
			return p, err
		}
		scan.Stop = append(hi, 0)
	}
	limit := q.Rows
	if limit <= 0 {
		limit = lookRows
	}
	x := r.client.Scanner(scan)
	defer x.Close(context.WithoutCancel(ctx))
	var last []byte
	n, end := 0, false
	err = read(out, func() error {
		for n < limit && (n == 0 || !out.Full()) {
			rows, err := x.Next(ctx)
			if errors.Is(err, io.EOF) {
				end = true
				return nil
			}
			if err != nil {
				return unavailable(err)
			}
			for _, cells := range rows {
				if n == limit || n > 0 && out.Full() {
					return nil
				}
				last = bytes.Clone(cells[0].Row)
				if err := src.put(out, batch.Read, last, cells, false); err != nil {
					return err
				}
				n++
			}
		}
		return nil
	})
	if err != nil {
		return p, err
	}
	if !end {
		p.Rest = sdk.Range{Schema: q.Schema, Hi: q.Hi, Rows: q.Rows}
		if p.Rest.Lo, err = src.keyBytes(last); err != nil {
			return p, err
		}
	}
	p.High = r.here()
	return p, nil
}

// ReadKeys implements sdk.KeyReader.
func (r *Reader) ReadKeys(ctx context.Context, s *batch.Schema, keys [][]byte, out *batch.Builder) (p sdk.Placed, err error) {
	src, err := r.lookup(s)
	if err != nil {
		return p, err
	}
	p.Low = r.here()
	rows := make([][]byte, len(keys))
	for i, k := range keys {
		if rows[i], err = src.rowKey(k); err != nil {
			return p, err
		}
	}
	got, err := r.client.Gets(ctx, src.name, rows, src.wanted)
	if err != nil {
		return p, unavailable(err)
	}
	err = read(out, func() error {
		for i, cells := range got {
			if len(cells) == 0 {
				continue
			}
			if err := src.put(out, batch.Read, rows[i], cells, false); err != nil {
				return err
			}
		}
		return nil
	})
	p.High = r.here()
	return p, err
}

// read puts rows into one entry, without a position.
func read(out *batch.Builder, body func() error) error {
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return err
	}
	err := body()
	return errors.Join(err, out.EndTx(true, nil, nil))
}

// keyBytes makes the key bytes of a row key.
func (s *source) keyBytes(row []byte) ([]byte, error) {
	b := batch.NewBuilder(batch.Limits{})
	err := read(b, func() error { return s.put(b, batch.Delete, row, nil, false) })
	if err != nil {
		return nil, err
	}
	key, _ := b.LastKeys()
	return bytes.Clone(key), nil
}
