package rowbench

import (
	"testing"
	"time"
)

func benchmark(b *testing.B, c codec, rows int) {
	data := makeRows(rows)
	out, err := c.encode(data)
	if err != nil {
		b.Fatal(err)
	}
	var sum checksum
	if err := c.decode(out, &sum); err != nil { // the first block has the schema
		b.Fatal(err)
	}
	b.SetBytes(int64(len(out)))
	b.ReportAllocs()
	for b.Loop() {
		out, err := c.encode(data)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.decode(out, &sum); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
	b.ReportMetric(float64(len(out))/float64(rows), "B/row")
}

func BenchmarkPacked64(b *testing.B)     { benchmark(b, newPacked(), 64) }
func BenchmarkPacked1024(b *testing.B)   { benchmark(b, newPacked(), 1024) }
func BenchmarkMessages64(b *testing.B)   { benchmark(b, newMessages(), 64) }
func BenchmarkMessages1024(b *testing.B) { benchmark(b, newMessages(), 1024) }

func BenchmarkPackedEncode(b *testing.B) {
	data, c := makeRows(1024), newPacked()
	for b.Loop() {
		if _, err := c.encode(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1024), "ns/row")
}

func BenchmarkPackedDecode(b *testing.B) {
	data, c := makeRows(1024), newPacked()
	out, err := c.encode(data)
	if err != nil {
		b.Fatal(err)
	}
	var sum checksum
	for b.Loop() {
		if err := c.decode(out, &sum); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1024), "ns/row")
}

// TestMeasure runs the comparison shortly: both read the same values from the
// rows that the documents speak of. Time is judged by make bench.
func TestMeasure(t *testing.T) {
	r, err := Measure(1, 64, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.RowBytes < 300 || r.RowBytes > 330 {
		t.Errorf("rows of %d bytes, want about 310", r.RowBytes)
	}
	t.Log(r)
}
