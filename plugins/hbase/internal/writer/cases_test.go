package writer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/plugins/hbase/internal/hbasetest"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/writer"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// B136: one event source batch that deletes several rows takes all of them.
func TestB136SeveralRowsAreDeletedAtOnce(t *testing.T) {
	m := hbasetest.New()
	s := orderSchema()
	src := &source{}
	for _, k := range []string{"19", "20", "21", "22", "24"} {
		src.events = append(src.events, event{key: k, b: "there"})
	}
	for _, k := range []string{"20", "21", "22", "24"} {
		src.events = append(src.events, event{key: k, gone: true})
	}
	w, _ := claimed(t, m.Client(), 1, writer.Config{}, s)
	for _, span := range [][2]int{{0, 5}, {5, 9}} {
		c := src.changes(t, s, span[0], span[1], 100, false)
		var one []sdk.Change
		for _, seg := range c.Segments {
			one = append(one, seg...)
		}
		c.Segments = [][]sdk.Change{one}
		if recs, err := w.ApplyAt(context.Background(), c); err != nil || len(recs) > 0 {
			t.Fatal(recs, err)
		}
	}
	if got := orderRows(t, m.Client()); !slices.Equal(got, []string{"0000-19 a= b=there"}) {
		t.Errorf("got %q, want row 19 alone", got)
	}
}

// broken is a store whose servers break down inside.
type broken struct{ writer.Store }

func (broken) Batch(_ context.Context, _ string, muts []rpc.Mutation) ([]error, error) {
	errs := make([]error, len(muts))
	for i := range errs {
		errs[i] = &rpc.RemoteError{Class: "java.lang.NullPointerException", Message: "null", DoNotRetry: true}
	}
	return errs, nil
}

// B140: a write that a server breaks down at is never taken as done.
func TestB140FailedWritesAreNotAcknowledged(t *testing.T) {
	m := hbasetest.New()
	s := orderSchema()
	src := &source{events: []event{{key: "k", b: "1"}}}
	w, _ := claimed(t, broken{m.Client()}, 1, writer.Config{}, s)
	recs, err := w.ApplyAt(context.Background(), src.changes(t, s, 0, 1, 100, false))
	if err == nil && len(recs) == 0 {
		t.Fatal("the change is acknowledged")
	}
	var f *sdk.Fault
	if err != nil && !errors.As(err, &f) {
		t.Errorf("%v has no code", err)
	}
}

// B139: rows of a table that the configuration does not name have a place too.
func TestB139TablesWithoutARuleAreWritten(t *testing.T) {
	m := hbasetest.New()
	s := orderSchema()
	s.Namespace, s.Table = "shop", "new"
	src := &source{events: []event{{key: "k", b: "1"}}}
	w, _ := claimed(t, m.Client(), 1, writer.Config{Tables: map[string]writer.Rule{"shop.old": {Table: "old"}}}, s)
	_, err := w.ApplyAt(context.Background(), src.changes(t, s, 0, 1, 100, false))
	must(t, err)
	if rows, err := m.Client().Get(context.Background(), "shop:new", rpc.Get{Row: []byte("k")}); err != nil || len(rows) == 0 {
		t.Errorf("table shop:new: %v, %v", rows, err)
	}
}

// What was written can be read back, in ranges, whatever the template is.
func TestWrittenRowsAreReadBack(t *testing.T) {
	for _, template := range []string{"{id}", "{salt:4}{id}", "x-{id:text}"} {
		m := hbasetest.New()
		s := orderSchema()
		src := &source{}
		var want []string
		for i := range 25 {
			a := fmt.Sprint("a", i)
			if i%3 == 0 {
				a = ""
			}
			src.events = append(src.events, event{key: fmt.Sprintf("k%02d", i), a: a, b: fmt.Sprint("b", i)})
			want = append(want, fmt.Sprintf("k%02d %s b%d", i, a, i))
		}
		w, _ := claimed(t, m.Client(), 1, writer.Config{Tables: map[string]writer.Rule{"t": {Table: "order", RowKey: template}}}, s)
		_, err := w.ApplyAt(context.Background(), src.changes(t, s, 0, 25, 100, false))
		must(t, err)
		scan := func(r sdk.Range) (got []string, keys [][]byte) {
			for r.Schema != nil {
				b := batch.NewBuilder(batch.Limits{})
				rest, err := w.Scan(context.Background(), r, b)
				must(t, err)
				r = rest
				data, err := b.Finish()
				must(t, err)
				var blk batch.Block
				must(t, blk.Decode(data, batch.NewRegistry(), batch.Limits{}))
				for i := range blk.Len() {
					var ev batch.Event
					must(t, blk.Event(i, &ev))
					v, err := ev.After.Values(nil)
					must(t, err)
					got = append(got, fmt.Sprintf("%s %s %s", v[0].Bytes(), v[1].Bytes(), v[2].Bytes()))
					keys = append(keys, slices.Clone(ev.Key))
				}
			}
			slices.Sort(got)
			return got, keys
		}
		got, keys := scan(sdk.Range{Schema: s, Rows: 10})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", template, d)
		}
		slices.SortFunc(keys, func(a, b []byte) int { return slices.Compare(a, b) })
		got, _ = scan(sdk.Range{Schema: s, Lo: keys[4], Hi: keys[9], Rows: 3})
		if d := cmp.Diff(want[5:10], got); d != "" {
			t.Errorf("%s, a range (-want +got):\n%s", template, d)
		}
	}
}
