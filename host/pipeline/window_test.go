package pipeline

import (
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
)

// What stands behind the last position need not be acknowledged before a stop: it
// is read again.
func TestTail(t *testing.T) {
	whole := batch.Tx{Begins: true, Ends: true, End: []byte("p")}
	nowhere := batch.Tx{Begins: true, Ends: true} // a heartbeat, layouts before the first change
	begun, middle, end := batch.Tx{Begins: true}, batch.Tx{}, batch.Tx{Ends: true, End: []byte("q")}
	for _, tt := range []struct {
		name string
		in   [][]batch.Tx
		want int64
	}{
		{"nothing", nil, 0},
		{"a transaction", [][]batch.Tx{{whole}}, 1},
		{"one that has begun", [][]batch.Tx{{whole}, {begun}, {middle}}, 1},
		{"one that has ended", [][]batch.Tx{{whole}, {begun}, {middle}, {end}}, 4},
		{"begun behind one that has ended", [][]batch.Tx{{whole, begun}}, 0},
		{"no position yet", [][]batch.Tx{{nowhere}, {nowhere}}, 0},
		{"no position since", [][]batch.Tx{{whole}, {nowhere}, {nowhere}}, 1},
		{"no position since, in one block", [][]batch.Tx{{whole}, {whole, nowhere}}, 1},
		{"begun behind what has none", [][]batch.Tx{{whole}, {nowhere}, {begun}}, 2},
	} {
		w := newWindow(Window{}, 1, func(int, int) {})
		for _, txs := range tt.in {
			w.add(&entry{block: batch.Block{Txs: txs}})
		}
		if got := w.tail(); got != tt.want {
			t.Errorf("%s: tail is %d, want %d", tt.name, got, tt.want)
		}
	}
}
