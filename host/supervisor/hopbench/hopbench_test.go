package hopbench

import (
	"context"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

// TestMeasure runs the comparison shortly: all ways bring the same values. Time is
// judged by the benchmark.
func TestMeasure(t *testing.T) {
	r, err := Measure(context.Background(), 1, 4096, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
}

// BenchmarkHop prints the figures as text and reports those of the packed way;
// its own time means nothing.
func BenchmarkHop(b *testing.B) {
	for _, batch := range []int{64, 1024} {
		b.Run(map[int]string{64: "64", 1024: "1024"}[batch], func(b *testing.B) {
			r, err := Measure(context.Background(), 5, 100*1024, batch)
			if err != nil {
				b.Fatal(err)
			}
			b.Log(r)
			b.ReportMetric(r.Packed.Median, "µsCPU/row")
			b.ReportMetric(r.Ratio.Median, "×protobuf-row")
			b.ReportMetric(r.BatchedRatio.Median, "×protobuf-batched")
			b.ReportMetric(0, "ns/op")
		})
	}
}
