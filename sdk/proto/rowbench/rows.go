package rowbench

import (
	"fmt"
	"math/rand/v2"

	"github.com/datalink-go/datalink/sdk/batch"
)

// column says how the values of one column are made.
type column struct {
	name string
	typ  batch.Type
	make func(r *rand.Rand) cell
}

// cell is one value as a source holds it.
type cell struct {
	null  bool
	i     int64
	f     float64
	bytes []byte
	text  string // the same, for the messages: a conversion is not theirs to pay
}

func number(lo, hi int64) func(*rand.Rand) cell {
	return func(r *rand.Rand) cell { return cell{i: lo + r.Int64N(hi-lo)} }
}

func text(lo, hi int) func(*rand.Rand) cell {
	return func(r *rand.Rand) cell {
		b := make([]byte, lo+r.IntN(hi-lo+1))
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
		}
		return cell{bytes: b}
	}
}

func nullable(f func(*rand.Rand) cell) func(*rand.Rand) cell {
	return func(r *rand.Rand) cell {
		if r.IntN(4) == 0 {
			return cell{null: true}
		}
		return f(r)
	}
}

func decimal(r *rand.Rand) cell {
	return cell{bytes: fmt.Appendf(nil, "%d.%02d", r.IntN(1e6), r.IntN(100))}
}

func moment(r *rand.Rand) cell {
	return cell{i: batch.Civil{Year: 2026, Month: 1 + r.IntN(12), Day: 1 + r.IntN(28), Hour: r.IntN(24), Minute: r.IntN(60)}.Pack()}
}

// The columns of an order as shops store it.
var columns = []column{
	{"id", batch.Int64, number(1, 1e9)},
	{"customer", batch.Int64, number(1, 1e7)},
	{"shop", batch.Int32, number(1, 1000)},
	{"status", batch.Uint8, number(0, 9)},
	{"flags", batch.Uint32, number(0, 1<<30)},
	{"version", batch.Int32, number(1, 20)},
	{"total", batch.Decimal, decimal},
	{"tax", batch.Decimal, decimal},
	{"weight", batch.Float64, func(r *rand.Rand) cell { return cell{f: r.Float64()} }},
	{"currency", batch.String, text(3, 3)},
	{"name", batch.String, text(10, 24)},
	{"email", batch.String, text(14, 30)},
	{"street", batch.String, nullable(text(10, 30))},
	{"city", batch.String, text(6, 14)},
	{"note", batch.String, nullable(text(20, 90))},
	{"token", batch.Bytes, text(32, 32)},
	{"attributes", batch.JSON, text(30, 60)},
	{"placed", batch.DateTime, moment},
	{"paid", batch.DateTime, nullable(moment)},
	{"changed", batch.Timestamp, number(17e14, 18e14)},
}

func schema() *batch.Schema {
	s := &batch.Schema{ID: 1, Namespace: "shop", Table: "orders", Key: []int{0}, PrimaryKey: true}
	for _, c := range columns {
		s.Columns = append(s.Columns, batch.Column{Name: c.name, Type: c.typ, Flags: batch.Nullable})
	}
	return s
}

// makeRows returns n rows, always the same.
func makeRows(n int) [][]cell {
	r := rand.New(rand.NewPCG(20, 310))
	rows := make([][]cell, n)
	for i := range rows {
		for _, c := range columns {
			v := c.make(r)
			v.text = string(v.bytes)
			rows[i] = append(rows[i], v)
		}
	}
	return rows
}

// checksum reads every value: whoever decodes has to touch all of it. Of texts it
// takes length and ends, since hashing all of them would measure the hash.
type checksum uint64

func (c *checksum) number(v uint64) { *c = *c*31 + checksum(v) }

func (c *checksum) bytes(b []byte) {
	v := uint64(len(b))
	if len(b) > 0 {
		v += uint64(b[0])<<32 + uint64(b[len(b)-1])<<40
	}
	c.number(v)
}

func (c *checksum) text(s string) {
	v := uint64(len(s))
	if len(s) > 0 {
		v += uint64(s[0])<<32 + uint64(s[len(s)-1])<<40
	}
	c.number(v)
}
