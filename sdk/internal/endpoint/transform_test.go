package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// fan gives as many rows for one as its table's name says: "twice", "never", …
type fan struct{ asked []string }

func (*fan) Check(context.Context) ([]sdk.Finding, error) { return nil, nil }
func (*fan) Close(context.Context) error                  { return nil }

func (f *fan) Schema(_ context.Context, in *batch.Schema) (*batch.Schema, error) {
	f.asked = append(f.asked, in.Table)
	switch in.Table {
	case "pass":
		return sdk.Pass, nil
	case "drop":
		return nil, nil
	case "text":
		out := in.Clone()
		out.Columns[0].Type = batch.String
		return out, nil
	}
	return in, nil
}

var errRow = errors.New("this row will not do")

func (f *fan) Apply(_ context.Context, in *batch.Event, s *batch.Schema, out *batch.Builder) error {
	v, err := in.After.Values(nil)
	if err != nil {
		return err
	}
	n := map[string]int{"twice": 2, "never": 0, "text": 1, "same": 1}[s.Table]
	for range n {
		if v[0].Int64() == 666 {
			return errRow
		}
		if err := out.BeginRow(in.Kind, s); err != nil {
			return err
		}
		out.BeginImage(batch.AfterImage)
		if s.Table == "text" {
			out.PutString(fmt.Sprint(v[0].Int64()))
		} else {
			out.PutInt(v[0].Int64())
		}
		out.EndImage()
		if err := out.EndRow(); err != nil {
			return err
		}
	}
	return nil
}

func table(id uint32, name string) *batch.Schema {
	return &batch.Schema{ID: id, Table: name, Columns: []batch.Column{{Name: "a", Type: batch.Int32}}}
}

func block(tb testing.TB, values []int64, tables ...*batch.Schema) []byte {
	tb.Helper()
	b := batch.NewBuilder(batch.Limits{})
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	for i, v := range values {
		must(b.BeginTx(batch.Tx{Begins: i > 0, Ordinal: uint64(i * 3), ID: fmt.Sprint("tx", i), Covers: []batch.Cover{{Point: 1, Upto: 2}}}))
		for _, s := range tables {
			must(b.BeginRow(batch.Insert, s))
			b.BeginImage(batch.AfterImage)
			b.PutInt(v)
			b.EndImage()
			must(b.EndRow())
			must(b.Truncate(s))
		}
		must(b.Heartbeat(int64(i)))
		must(b.EndTx(i+1 < len(values), []byte{1, byte(i)}, []byte{2, byte(i)}))
	}
	data, err := b.Finish()
	must(err)
	return bytes.Clone(data)
}

// print writes a block as text.
func print(tb testing.TB, data []byte) string {
	tb.Helper()
	var b batch.Block
	if err := b.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
		tb.Fatal(err)
	}
	var s strings.Builder
	for _, tx := range b.Txs {
		fmt.Fprintf(&s, "%s %t-%t %d % x % x %v:", tx.ID, tx.Begins, tx.Ends, tx.Ordinal, tx.Start, tx.End, tx.Covers)
		for i := range tx.Count {
			var e batch.Event
			if err := b.Event(tx.First+i, &e); err != nil {
				tb.Fatal(err)
			}
			fmt.Fprintf(&s, " %d", e.Ordinal)
			switch {
			case e.Kind == batch.Heartbeat:
				s.WriteString("h")
			case e.Kind == batch.Truncate:
				s.WriteString("x" + e.Schema.Table)
			default:
				v, err := e.After.Values(nil)
				if err != nil {
					tb.Fatal(err)
				}
				s.WriteString(e.Schema.Table + "=")
				if e.Schema.Columns[0].Type == batch.String {
					fmt.Fprintf(&s, "%q", v[0].Bytes())
				} else {
					fmt.Fprint(&s, v[0].Int64())
				}
			}
		}
		s.WriteString("\n")
	}
	return s.String()
}

func TestTransformer(t *testing.T) {
	tables := []*batch.Schema{table(1, "same"), table(2, "twice"), table(3, "never"), table(4, "pass"), table(5, "drop"), table(6, "text"), table(7, "other")}
	in := block(t, []int64{7, 8}, tables...)
	f := new(fan)
	tr := NewTransformer(f, batch.Limits{})
	got, err := tr.Apply(t.Context(), in, []uint64{1, 2, 3, 4, 5, 6, 99, 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	want := `tx0 false-true 0 01 00 02 00 [{1 2}]: 0same=7 1xsame 2twice=7 2twice=7 3xtwice 5xnever 6pass=7 7xpass 10text="7" 11xtext 12other=7 13xother 14h
tx1 true-false 3 01 01 02 01 [{1 2}]: 3same=8 4xsame 5twice=8 5twice=8 6xtwice 8xnever 9pass=8 10xpass 13text="8" 14xtext 15other=8 16xother 17h
`
	if s := print(t, got); s != want {
		t.Errorf("got\n%swant\n%s", s, want)
	}
	// Again: the result is whole each time, the transform is asked once only.
	n := len(f.asked)
	if again, err := tr.Apply(t.Context(), in, []uint64{1, 2, 3, 4, 5, 6}); err != nil || print(t, again) != want || len(f.asked) != n {
		t.Errorf("again: %v, asked %v", err, f.asked[n:])
	}
	// A stream that was opened anew uses the ids for other tables.
	anew := block(t, []int64{9}, table(1, "twice"), table(2, "same"))
	if got, err := tr.Apply(t.Context(), anew, []uint64{1, 2}); err != nil || !strings.Contains(print(t, got), "0twice=9 0twice=9 1xtwice 2same=9 3xsame") {
		t.Errorf("opened anew: %v", err)
	}
}

func TestTransformerErrors(t *testing.T) {
	tr := NewTransformer(new(fan), batch.Limits{})
	s := table(1, "same")
	_, err := tr.Apply(t.Context(), block(t, []int64{1, 666}, s), []uint64{1})
	if !errors.Is(err, errRow) || !strings.Contains(err.Error(), "ordinal 3 of transaction tx1") {
		t.Errorf("got %v, want the row named", err)
	}
	if _, err := tr.Apply(t.Context(), block(t, []int64{1}, s), []uint64{1}); err != nil {
		t.Errorf("after an error: %v", err)
	}
	if _, err := tr.Apply(t.Context(), []byte("no block"), nil); !errors.Is(err, batch.ErrCorrupt) {
		t.Errorf("no block: %v", err)
	}
}
