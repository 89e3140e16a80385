package rowbench

import (
	"fmt"
	"slices"
	"time"
)

// Result is what Measure found: times are for one row, encode and decode.
type Result struct {
	Rows, RowBytes   int
	Packed, Messages time.Duration // median
	Min, Median, Max float64       // ratios of the rounds, messages to packed
}

// String returns the result as one line.
func (r Result) String() string {
	return fmt.Sprintf("packed %v, one protobuf message a row %v per row of %d columns and %d bytes (batches of %d): %.1f× (min %.1f, max %.1f)",
		r.Packed, r.Messages, len(columns), r.RowBytes, r.Rows, r.Median, r.Min, r.Max)
}

// Measure runs both codecs in turn for that many rounds of about the given time
// each, on batches of that many rows.
func Measure(rounds, rows int, each time.Duration) (Result, error) {
	data := makeRows(rows)
	p, m := newPacked(), newMessages()
	var ratios []float64
	var ps, ms []time.Duration
	res := Result{Rows: rows}
	for i := range rounds + 1 {
		packedTime, size, sumP, err := timeOf(p, data, each/2)
		if err != nil {
			return res, err
		}
		messageTime, _, sumM, err := timeOf(m, data, each/2)
		if err != nil {
			return res, err
		}
		if sumP != sumM {
			return res, fmt.Errorf("the two codecs read other values: checksum %x and %x", sumP, sumM)
		}
		if i == 0 {
			continue // warm-up
		}
		res.RowBytes = size / rows
		ps, ms = append(ps, packedTime), append(ms, messageTime)
		ratios = append(ratios, float64(messageTime)/float64(packedTime))
	}
	slices.Sort(ratios)
	slices.Sort(ps)
	slices.Sort(ms)
	mid := rounds / 2
	res.Packed, res.Messages = ps[mid], ms[mid]
	res.Min, res.Median, res.Max = ratios[0], ratios[mid], ratios[rounds-1]
	return res, nil
}

type codec interface {
	encode(rows [][]cell) ([]byte, error)
	decode(data []byte, sum *checksum) error
}

// timeOf returns the time of one row, the size of a batch, and the checksum of one.
func timeOf(c codec, rows [][]cell, during time.Duration) (time.Duration, int, checksum, error) {
	var n, size int
	var sum checksum
	start := time.Now()
	for time.Since(start) < during || n == 0 {
		sum = 0
		data, err := c.encode(rows)
		if err != nil {
			return 0, 0, 0, err
		}
		if err := c.decode(data, &sum); err != nil {
			return 0, 0, 0, err
		}
		n += len(rows)
		size = len(data)
	}
	return time.Since(start) / time.Duration(n), size, sum, nil
}
