package delivery_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

// null is a transactional writer that writes nothing.
type null struct {
	sdk.TransactionalWriter
	rows, txs int
}

type nullTx struct{ w *null }

func (w *null) Claim(context.Context, sdk.Execution) (sdk.Claimed, error) { return sdk.Claimed{}, nil }

func (w *null) Prepare(context.Context, *batch.Schema) (sdk.Constraints, error) {
	return sdk.Constraints{}, nil
}
func (w *null) Begin(context.Context, []int32) (sdk.Tx, error) { return nullTx{w}, nil }

func (t nullTx) Fence(context.Context, []sdk.Next) error { return nil }
func (t nullTx) Apply(_ context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	t.w.rows += c.Len()
	t.w.txs++
	return nil, nil
}
func (t nullTx) Commit(context.Context) error   { return nil }
func (t nullTx) Rollback(context.Context) error { return nil }

// feed gives one block n times and then ends.
type feed struct {
	block []byte
	n     int
	seq   uint64
	reqs  []wire.WriteRequest
}

func (f *feed) Recv() (*wire.WriteRequest, error) {
	if int(f.seq) == f.n {
		return nil, io.EOF
	}
	f.seq++
	r := &f.reqs[int(f.seq)%len(f.reqs)]
	*r = wire.WriteRequest{Seq: f.seq, Block: f.block, First: position(0), Last: position(1)}
	return r, nil
}

func (f *feed) Send(*wire.WriteReply) error { return nil }

// BenchmarkDeliver measures the engine alone, per row: rows of 20 columns and
// 310 bytes in blocks of 1024, in source transactions of 10 rows.
func BenchmarkDeliver(b *testing.B) {
	for _, bc := range []struct {
		name   string
		kind   batch.Kind
		unique bool
		lanes  int32
		hot    int // distinct keys
	}{
		{"insert", batch.Insert, false, 1, 1024},
		{"update", batch.Update, false, 1, 1024},
		{"hot-update", batch.Update, false, 1, 16},
		{"update-unique", batch.Update, true, 1, 1024},
		{"insert-unique", batch.Insert, true, 1, 1024},
		{"insert-lanes-4", batch.Insert, false, 4, 1024},
		{"insert-unique-lanes-4", batch.Insert, true, 4, 1024},
	} {
		b.Run(bc.name, func(b *testing.B) {
			const rows = 1024
			block, size := wideBlock(b, bc.kind, bc.unique, rows, bc.hot)
			f := &feed{block: block, n: b.N/rows + 1, reqs: make([]wire.WriteRequest, 4096)}
			w := &null{}
			e, err := delivery.New(w, delivery.Config{Records: 4096, Lanes: bc.lanes, Pending: 8 << 20})
			if err != nil {
				b.Fatal(err)
			}
			ex := execution()
			if _, err := e.Claim(context.Background(), ex); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size / rows))
			b.ReportAllocs()
			b.ResetTimer()
			if err := e.Run(context.Background(), f); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(f.n*rows)/float64(max(w.txs, 1)), "rows/tx")
		})
	}
}

func wideBlock(b *testing.B, kind batch.Kind, unique bool, rows, keys int) ([]byte, int) {
	s := &batch.Schema{ID: 1, Table: "t", PrimaryKey: true, Key: []int{0}}
	s.Columns = append(s.Columns, batch.Column{Name: "id", Type: batch.Int64})
	for i := range 19 {
		c := batch.Column{Name: fmt.Sprint("c", i), Type: batch.String}
		if i%2 == 0 {
			c.Type = batch.Int64
		}
		s.Columns = append(s.Columns, c)
	}
	if unique {
		s.Uniques = []batch.Index{{Name: "u", Columns: []int{1}}}
	}
	bl := batch.NewBuilder(batch.Limits{Full: 4 << 20})
	image := func(side batch.Side, id int) {
		bl.BeginImage(side)
		bl.PutInt(int64(id))
		for i := range 19 {
			if i%2 == 0 {
				bl.PutInt(int64(id))
			} else {
				bl.PutString("twenty-four characters..")
			}
		}
		bl.EndImage()
	}
	for i := range rows {
		if i%10 == 0 {
			if err := bl.BeginTx(batch.Tx{Begins: true, ID: "x"}); err != nil {
				b.Fatal(err)
			}
		}
		if err := bl.BeginRow(kind, s); err != nil {
			b.Fatal(err)
		}
		if kind == batch.Update {
			image(batch.BeforeImage, i%keys)
		}
		image(batch.AfterImage, i%keys)
		if err := bl.EndRow(); err != nil {
			b.Fatal(err)
		}
		if i%10 == 9 || i == rows-1 {
			if err := bl.EndTx(true, nil, fmt.Append(nil, i)); err != nil {
				b.Fatal(err)
			}
		}
	}
	data, err := bl.Finish()
	if err != nil {
		b.Fatal(err)
	}
	return data, len(data)
}
