package mysql

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

// row is what one event does: nil before = insert, nil after = delete.
type row struct{ before, after []any }

// fieldCases are orders of changes at which replicators went wrong, each as
// transactions of a table with a unique key beside its own.
var fieldCases = []struct {
	name  string
	ddl   string
	txs   [][]row
	twice bool    // the stream comes again from its beginning
	lanes []int32 // nil = 1 and 4
	want  []string
}{
	{
		name: "B070 equal values in different unique keys", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT UNIQUE, c VARCHAR(20))",
		txs:  [][]row{{{nil, v(1, 2, "x")}, {nil, v(3, 4, "x")}, {nil, v(4, 1, "x")}}},
		want: []string{"1 2 x", "3 4 x", "4 1 x"},
	},
	{
		name: "B071 chain of key updates", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT UNIQUE, c VARCHAR(20))",
		txs: [][]row{
			{{nil, v(1, 10, "x")}, {nil, v(2, 20, "y")}, {nil, v(3, 30, "z")}},
			{{v(3, 30, "z"), v(4, 30, "z")}, {v(2, 20, "y"), v(3, 20, "y")}, {v(1, 10, "x"), v(2, 10, "x")}},
		},
		want: []string{"2 10 x", "3 20 y", "4 30 z"},
	},
	{
		name: "B072 insert after the update that frees its unique value", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT, c VARCHAR(20) CHARACTER SET utf8mb4, UNIQUE (b, c))",
		txs:  [][]row{{{nil, v(1, 5, "own")}}, {{v(1, 5, "own"), v(1, 5, "x")}, {nil, v(2, 5, "own")}}},
		want: []string{"1 5 x", "2 5 own"},
	},
	{
		name: "B073 key update and insert of the old key", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT UNIQUE, c VARCHAR(20))",
		txs:  [][]row{{{nil, v(1, 1, "x")}}, {{v(1, 1, "x"), v(2, 1, "x")}, {nil, v(1, 9, "new")}}},
		want: []string{"1 9 new", "2 1 x"},
	},
	{
		name: "B074 insert and update of one row", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT UNIQUE, c VARCHAR(20))",
		txs:  [][]row{{{nil, v(1, 1, "x")}, {v(1, 1, "x"), v(1, 2, "y")}}},
		want: []string{"1 2 y"},
	},
	{
		name: "B077 insert and key change come again", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT, c VARCHAR(20))", twice: true,
		txs:  [][]row{{{nil, v(1, 1, "x")}}, {{v(1, 1, "x"), v(2, 1, "x")}}},
		want: []string{"2 1 x"},
	},
	{
		name: "B079 update and delete of rows that are not there", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT UNIQUE, c VARCHAR(20))",
		txs:  [][]row{{{v(1, 1, "x"), v(1, 2, "y")}, {v(7, 7, "z"), nil}}},
		want: []string{"1 2 y"},
	},
	{
		name: "unique values exchanged through NULL", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT UNIQUE, c VARCHAR(20))",
		txs: [][]row{
			{{nil, v(1, 1, "x")}, {nil, v(2, 2, "y")}},
			{{v(1, 1, "x"), v(1, nil, "x")}, {v(2, 2, "y"), v(2, 1, "y")}, {v(1, nil, "x"), v(1, 2, "x")}},
		},
		want: []string{"1 2 x", "2 1 y"},
	},
	{
		// Sources that check keys late exchange them so. Lanes write each row in a
		// transaction of its own, of which none can come first.
		name: "unique values exchanged directly", lanes: []int32{1}, ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT UNIQUE, c VARCHAR(20))",
		txs:  [][]row{{{nil, v(1, 1, "x")}, {nil, v(2, 2, "y")}, {nil, v(3, 3, "z")}}, {{v(1, 1, "x"), v(1, 2, "x")}, {v(2, 2, "y"), v(2, 3, "y")}, {v(3, 3, "z"), v(3, 1, "z")}}},
		want: []string{"1 2 x", "2 3 y", "3 1 z"},
	},
	{
		name: "rows that refer to rows of their own table", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT, c VARCHAR(20), FOREIGN KEY (b) REFERENCES t (a))",
		txs:  [][]row{{{nil, v(1, nil, "x")}, {nil, v(2, 1, "x")}, {nil, v(3, 2, "x")}}, {{v(3, 2, "x"), nil}, {v(2, 1, "x"), nil}, {v(1, nil, "x"), nil}, {nil, v(4, 4, "self")}}},
		want: []string{"4 4 self"},
	},
	{
		name: "unique values that are equal under the collation", ddl: "CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT, c VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci UNIQUE)",
		txs:  [][]row{{{nil, v(1, 1, "a")}}, {{v(1, 1, "a"), nil}, {nil, v(2, 2, "Á ")}}, {{v(2, 2, "Á "), v(2, 2, "b")}, {nil, v(3, 3, "A")}}},
		want: []string{"2 2 b", "3 3 A"},
	},
}

func v(vals ...any) []any { return vals }

func init() {
	for _, c := range fieldCases {
		suite["field case "+c.name] = func(t *testing.T, s *testServer) {
			if c.lanes == nil {
				c.lanes = []int32{1, 4}
			}
			for _, lanes := range c.lanes {
				one := lanes == 1 // all in one block, or a block each
				db := s.database(t)
				s.SQL(c.ddl, db)
				rounds := 1
				if c.twice {
					rounds = 2
				}
				for round := range rounds {
					w := s.writer(t, db, nil)
					ex := execution(fmt.Sprint("x", round), uint64(round+1))
					ex.Lanes = lanes
					if err := deliver(t, w, ex, c.txs, one); err != nil {
						t.Fatalf("%d lanes: %v", lanes, err)
					}
					if c.twice && round == 0 {
						s.SQL("DELETE FROM datalink_progress", db)
					}
				}
				expect(t, s, db, "SELECT * FROM t ORDER BY a", c.want...)
			}
		}
	}
}

// blocks is the host's side of a stream.
type blocks struct {
	reqs []*wire.WriteRequest
	at   int
	err  error
}

func (b *blocks) Recv() (*wire.WriteRequest, error) {
	if b.at == len(b.reqs) {
		return nil, io.EOF
	}
	b.at++
	return b.reqs[b.at-1], nil
}

func (b *blocks) Send(r *wire.WriteReply) error {
	if len(r.Records) > 0 {
		b.err = &r.Records[0].Fault
		return io.ErrClosedPipe
	}
	return nil
}

// deliver brings transactions of the table t through the engine to the writer.
func deliver(t *testing.T, w *Writer, ex sdk.Execution, txs [][]row, one bool) error {
	schema := &batch.Schema{ID: 1, Table: "t", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{
		{Name: "a", Type: batch.Int64}, {Name: "b", Type: batch.Int64, Flags: batch.Nullable}, {Name: "c", Type: batch.String, Length: 20, Flags: batch.Nullable, Charset: "latin1"},
	}}
	eng, err := delivery.New(w, delivery.Config{})
	rowtest.Must(t, err)
	if _, err := eng.Claim(bg, ex); err != nil {
		return err
	}
	s := &blocks{}
	b := batch.NewBuilder(batch.Limits{})
	finish := func() {
		data, err := b.Finish()
		rowtest.Must(t, err)
		s.reqs = append(s.reqs, &wire.WriteRequest{Seq: uint64(len(s.reqs) + 1), Block: append([]byte{}, data...)})
		b.Reset()
	}
	for n, tx := range txs {
		rowtest.Must(t, b.BeginTx(batch.Tx{Begins: true, ID: fmt.Sprint("tx", n)}))
		for _, r := range tx {
			k := batch.Update
			switch {
			case r.before == nil:
				k = batch.Insert
			case r.after == nil:
				k = batch.Delete
			}
			rowtest.Must(t, b.BeginRow(k, schema))
			for side, vals := range [][]any{r.before, r.after} {
				if vals == nil {
					continue
				}
				b.BeginImage(batch.Side(side))
				for i := range vals {
					rowtest.Put(b, &schema.Columns[i], vals[i])
				}
				b.EndImage()
			}
			rowtest.Must(t, b.EndRow())
		}
		rowtest.Must(t, b.EndTx(true, nil, fmt.Appendf(nil, "p%d", n)))
		if !one {
			finish()
		}
	}
	if one {
		finish()
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	err = eng.Run(ctx, s)
	if s.err != nil {
		return s.err
	}
	return err
}
