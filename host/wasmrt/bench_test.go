package wasmrt

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk/batch"
)

// wide is a table of 20 columns whose rows take about 310 bytes.
func wide() *batch.Schema {
	s := &batch.Schema{ID: 1, Namespace: "shop", Table: "customers", PrimaryKey: true, Key: []int{0}}
	add := func(name string, t batch.Type) { s.Columns = append(s.Columns, batch.Column{Name: name, Type: t}) }
	add("id", batch.Int64)
	add("name", batch.String)
	add("note", batch.String)
	for i := range 6 {
		add(fmt.Sprintf("n%d", i), batch.Int64)
	}
	for i := range 5 {
		add(fmt.Sprintf("s%d", i), batch.String)
	}
	for i := range 3 {
		add(fmt.Sprintf("d%d", i), batch.DateTime)
	}
	add("amount", batch.Decimal)
	add("f", batch.Float64)
	add("u", batch.UUID)
	return s
}

func wideBlock(tb testing.TB, rows int) []byte {
	tb.Helper()
	s := wide()
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true, ID: "a:1"}); err != nil {
		tb.Fatal(err)
	}
	for i := range rows {
		if err := b.BeginRow(batch.Insert, s); err != nil {
			tb.Fatal(err)
		}
		b.BeginImage(batch.AfterImage)
		for k := range s.Columns {
			switch s.Columns[k].Type {
			case batch.Int64, batch.DateTime:
				b.PutInt(int64(i*20 + k))
			case batch.Float64:
				b.PutFloat(float64(i))
			case batch.UUID:
				b.PutBytes([]byte("0123456789abcdef"))
			case batch.Decimal:
				b.PutString("12345.67")
			default:
				b.PutString("text of a column, 25 ch. ")
			}
		}
		b.EndImage()
		if err := b.EndRow(); err != nil {
			tb.Fatal(err)
		}
	}
	if err := b.EndTx(true, nil, []byte("p")); err != nil {
		tb.Fatal(err)
	}
	data, err := b.Finish()
	if err != nil {
		tb.Fatal(err)
	}
	return slices.Clone(data)
}

// BenchmarkMask transforms blocks of 1024 rows of 20 columns by the same mask:
// as native code, and as a module in Go and in Rust through the child, the
// result checked. Times are taken in turns, so that each ratio is of one moment.
func BenchmarkMask(b *testing.B) {
	const (
		rows   = 1024
		rounds = 9
		blocks = 40
	)
	in := wideBlock(b, rows)
	s := wide()
	n := newNative(b, maskConfig, s)
	r := newRuntime(b)
	kinds := []string{"native", "go", "rust", "check"}
	modules := map[string]*Module{"go": open(b, r, "go", maskGo(b), nil), "rust": open(b, r, "rust", maskRust(b), nil)}
	for _, m := range modules {
		configure(b, m, maskConfig, s)
	}
	var v Verifier
	v.Expect(s, s)
	want := slices.Clone(n.apply(b, in, 1))
	once := func(kind string) {
		switch m := modules[kind]; {
		case m != nil:
			out, err := m.Apply(b.Context(), in, []uint32{1})
			if err != nil || len(out) != len(want) {
				b.Fatalf("%s: %d bytes, want %d: %v", kind, len(out), len(want), err)
			}
		case kind == "check":
			if _, err := v.Input(in, []uint32{1}); err != nil {
				b.Fatal(err)
			}
			if err := v.Output(want); err != nil {
				b.Fatal(err)
			}
		default:
			n.apply(b, in, 1)
		}
	}
	times := map[string][]float64{}
	for b.Loop() {
		for round := range rounds + 1 {
			for _, kind := range kinds {
				start := time.Now()
				for range blocks {
					once(kind)
				}
				if round > 0 { // the first one warms up
					times[kind] = append(times[kind], float64(time.Since(start))/blocks/rows)
				}
			}
		}
	}
	for _, kind := range kinds {
		ns := slices.Sorted(slices.Values(times[kind]))
		b.ReportMetric(ns[len(ns)/2], kind+"-ns/row")
		if kind == "native" {
			continue
		}
		ratios := make([]float64, len(times[kind]))
		for i, t := range times[kind] {
			ratios[i] = t / times["native"][i]
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[0], kind+"/native-min")
		b.ReportMetric(ratios[len(ratios)/2], kind+"/native-median")
		b.ReportMetric(ratios[len(ratios)-1], kind+"/native-max")
	}
	b.ReportMetric(float64(len(in))/rows, "B/row")
	b.ReportMetric(0, "ns/op")
}
