package bench

import (
	"bytes"
	"context"
	"fmt"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// hbaseRows makes blocks of inserts of ten columns and 310 bytes.
func hbaseRows(rows int) (blocks []rowBlock, err error) {
	s := &batch.Schema{ID: 1, Version: 1, Table: "ours", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{{Name: "id", Type: batch.String}}}
	for i := range 9 {
		s.Columns = append(s.Columns, batch.Column{Name: fmt.Sprint("column", i), Type: batch.String})
	}
	n := sdk.Numbers{Format: "bench"}
	b := batch.NewBuilder(batch.Limits{})
	for i := range rows {
		if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
			return nil, err
		}
		if err := b.BeginRow(batch.Insert, s); err != nil {
			return nil, err
		}
		id := fmt.Sprintf("r%012d", i)
		b.BeginImage(batch.AfterImage)
		b.PutString(id)
		for c := range 9 {
			b.PutString(fmt.Sprintf("value %d of row %s, padded!", c, id))
		}
		b.EndImage()
		if err := b.EndRow(); err != nil {
			return nil, err
		}
		if err := b.EndTx(true, nil, n.Source(uint64(i+1))); err != nil {
			return nil, err
		}
		if b.Full() || i == rows-1 {
			data, err := b.Finish()
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, rowBlock{bytes.Clone(data), b.Len(), uint64(i + 1)})
			b.Reset()
		}
	}
	return blocks, nil
}

// rowBlock is a block, how many rows are in it, and the position after it.
type rowBlock struct {
	data []byte
	rows int
	end  uint64
}

// rowSource gives blocks that are there already.
type rowSource struct {
	sdk.Numbers
	blocks []rowBlock
	begin  func() // called when the first block is asked for
}

// Open implements pipeline.Source.
func (s *rowSource) Open(ctx context.Context, _ *wire.OpenRequest) (pipeline.SourceStream, error) {
	return &rowStream{s: s, ctx: ctx, credit: make(chan uint64, 1<<16)}, nil
}

// Durable implements pipeline.Source.
func (*rowSource) Durable(context.Context, sdk.Position) error { return nil }

type rowStream struct {
	s      *rowSource
	ctx    context.Context //nolint:containedctx // that of the stream
	credit chan uint64
	left   int64
	at     int
	end    uint64 // of the block before
}

func (r *rowStream) Grant(records, _ uint64) error { r.credit <- records; return nil }

func (r *rowStream) Recv() (*wire.ReadReply, error) {
	if r.at == 0 {
		r.s.begin()
	}
	if r.at == len(r.s.blocks) {
		return &wire.ReadReply{End: true}, nil
	}
	for r.left <= 0 {
		select {
		case n := <-r.credit:
			r.left += int64(n)
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		}
	}
	place := func(n uint64) (p sdk.Position) {
		if n > 0 {
			p.Source = r.s.Source(n)
			p.Format, p.Version = r.s.PositionFormat()
		}
		return p
	}
	next := &r.s.blocks[r.at]
	a := &wire.ReadReply{Block: bytes.Clone(next.data), First: place(r.end), Last: place(next.end)}
	r.left -= int64(next.rows)
	r.end = next.end
	r.at++
	return a, nil
}

func (*rowStream) Close() error { return nil }

// forgetful keeps the progress of one run.
type forgetful struct{ ceiling uint64 }

func (*forgetful) Load(context.Context, string) (*sdk.Claimed, error)  { return &sdk.Claimed{}, nil }
func (*forgetful) Save(context.Context, string, *pipeline.Saved) error { return nil }
func (f *forgetful) Reserve(_ context.Context, _ string, want uint64) (uint64, error) {
	f.ceiling = max(f.ceiling, want)
	return f.ceiling, nil
}
