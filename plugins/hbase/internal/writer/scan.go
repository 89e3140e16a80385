package writer

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/value"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var _ sdk.TargetScanner = (*Writer)(nil)

const scanRows = 1000

// Scan reads rows of a range back. Where row keys are in the order of the key's
// columns it gives some rows and says what is left; else, as with a salt, it looks
// through the table and gives all rows of the range at once.
func (w *Writer) Scan(ctx context.Context, r sdk.Range, out *batch.Builder) (rest sdk.Range, err error) {
	p, err := newPlan(&w.cfg, r.Schema)
	if err != nil {
		return rest, err
	}
	if _, err := w.store.Describe(ctx, p.table); errors.Is(err, rpc.ErrNoTable) {
		return rest, sdk.Faultf(sdk.CodeUnknownTable, "table %s is not in the target", p.table)
	} else if err != nil {
		return rest, fault(err)
	}
	scan := rpc.Scan{Table: p.table, NoCache: true}
	a := &apply{w: w, ctx: ctx}
	if len(r.Lo) > 0 || len(r.Hi) > 0 {
		for _, k := range p.schema.Key {
			if c := &p.schema.Columns[k]; !bytewise(c) {
				return rest, sdk.Faultf(sdk.CodeUnimplemented, "rows of %s cannot be found by a range: the source orders column %s by %q, HBase by bytes", p.schema.Name(), c.Name, c.Collation)
			}
		}
	}
	inside, err := a.bounds(p, &sdk.Change{Range: &batch.KeyRange{Lo: r.Lo, Hi: r.Hi}}, &scan)
	if err != nil {
		return rest, err
	}
	limit := r.Rows
	if limit <= 0 {
		limit = scanRows
	}
	x := w.store.Scan(scan)
	defer x.Close(context.WithoutCancel(ctx))
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return rest, err
	}
	end, last, err := p.give(ctx, x, inside, limit, out)
	if err = errors.Join(err, out.EndTx(true, nil, nil)); err != nil || end {
		return rest, err
	}
	rest = sdk.Range{Schema: r.Schema, Hi: r.Hi, Rows: r.Rows}
	rest.Lo, err = p.keyBytes(last)
	return rest, err
}

// give puts rows into out; end says that there are no more.
func (p *plan) give(ctx context.Context, x Rows, inside func([]byte) (bool, error), limit int, out *batch.Builder) (end bool, last []byte, err error) {
	n := 0
	for {
		rows, err := x.Next(ctx)
		if errors.Is(err, io.EOF) {
			return true, nil, nil
		}
		if err != nil {
			return false, nil, fault(err)
		}
		for _, cells := range rows {
			if ok, err := inside(cells[0].Row); err != nil {
				return false, nil, err
			} else if !ok {
				continue
			}
			if p.key.Ordered() && (n == limit || n > 0 && out.Full()) {
				return false, last, nil
			}
			last = bytes.Clone(cells[0].Row)
			if err := p.image(out, last, cells); err != nil {
				return false, nil, err
			}
			n++
		}
	}
}

// image puts one row. Rows that are none of the template are nobody's: they are
// given as an error, for what they stand for is not known.
func (p *plan) image(out *batch.Builder, row []byte, cells []rpc.Cell) error {
	parts, err := p.key.Decode(row)
	if err != nil {
		return sdk.Faultf(sdk.CodeUnfit, "table %s: %v", p.table, err)
	}
	if err := out.BeginRow(batch.Read, p.schema); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
columns:
	for i := range p.schema.Columns {
		c := &p.schema.Columns[i]
		if p.columns[i].key {
			for k := range parts {
				if x := &parts[k]; x.Column == i && !x.Put(out, c) {
					out.DropRow()
					return sdk.Faultf(sdk.CodeUnfit, "table %s, row %q: column %s is no %s", p.table, row, c.Name, c.Type)
				}
			}
			continue
		}
		for k := range cells {
			if same(cells[k].Family, p.columns[i].family) && same(cells[k].Qualifier, p.columns[i].qualifier) {
				value.Put(out, p.encoding, c, cells[k].Value)
				continue columns
			}
		}
		out.PutNull()
	}
	out.EndImage()
	return out.EndRow()
}

// keyBytes makes the key bytes of a row key.
func (p *plan) keyBytes(row []byte) ([]byte, error) {
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		return nil, err
	}
	if err := errors.Join(p.image(b, row, nil), b.EndTx(true, nil, nil)); err != nil {
		return nil, err
	}
	key, _ := b.LastKeys()
	return bytes.Clone(key), nil
}
