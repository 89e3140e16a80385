package conformance_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance"
)

// counter is a reader of transactions with one, two or three rows, which it splits
// where a block is full. Fault names what it does wrong.
type counter struct {
	sdk.Numbers
	fault  string
	waits  bool // its source has no end
	points sdk.NumberPoints
	at     uint64 // transaction
	row    uint64 // within it
	closed int
}

const counted = 12

var numbers = &batch.Schema{ID: 1, Table: "numbers", Key: []int{0}, Columns: []batch.Column{{Name: "n", Type: batch.Int64}}}

func (c *counter) Check(context.Context) ([]sdk.Finding, error) { return nil, nil }
func (c *counter) Durable(context.Context, sdk.Position) error  { return nil }
func (c *counter) Close(context.Context) error {
	c.closed++
	return c.wrong("close twice", c.closed > 1)
}

func (c *counter) wrong(fault string, when bool) error {
	if c.fault == fault && when {
		return errors.New(fault)
	}
	return nil
}

func (c *counter) Open(_ context.Context, _ sdk.Execution, points []sdk.Point, _ []batch.StateItem) (err error) {
	c.points, err = c.Points(points)
	c.at, c.row = c.points.Start(), 0
	if c.fault == "start at the first point" && len(points) > 0 {
		c.at, _, err = c.Number(points[0].Position)
	}
	return err
}

func (c *counter) ComparePositions(a, b sdk.Position) (sdk.Order, error) {
	switch c.fault {
	case "take foreign positions":
		a.Format, a.Version, b.Format, b.Version = c.Format, 1, c.Format, 1
	case "compare without ordinals":
		a.Ordinal, b.Ordinal = 0, 0
	}
	return c.Numbers.ComparePositions(a, b)
}

func (c *counter) FormatPosition(p sdk.Position) (string, error) {
	if c.fault == "print without ordinals" {
		p.Ordinal = 0
	}
	return c.Numbers.FormatPosition(p)
}

func (c *counter) covers() []batch.Cover {
	covers := c.points.Covers(nil, c.at, c.at+1)
	switch c.fault {
	case "mark nothing":
		covers = nil
	case "mark one too few":
		covers = c.points.Covers(nil, c.at+1, c.at+2)
	case "mark parts as whole":
		for i := range covers {
			covers[i].Upto = 0
		}
	}
	return covers
}

func (c *counter) Next(ctx context.Context, out *batch.Builder) error {
	for c.at < counted {
		if out.Full() && c.fault != "fill on" {
			return nil
		}
		rows := c.at%3 + 1
		if err := out.BeginTx(batch.Tx{Begins: c.row == 0, Ordinal: c.row, Covers: c.covers()}); err != nil {
			return err
		}
		for first := true; c.row < rows && (first || !out.Full() || c.fault == "fill on"); c.row++ {
			first = false
			if err := out.BeginRow(batch.Insert, numbers); err != nil {
				return err
			}
			out.BeginImage(batch.AfterImage)
			out.PutInt(int64(c.at*10 + c.row))
			out.EndImage()
			if err := out.EndRow(); err != nil {
				return err
			}
		}
		if c.fault == "leave it open" {
			return nil
		}
		end := c.row == rows
		if err := out.EndTx(end, c.Source(c.at), c.Source(c.at+1)); err != nil {
			return err
		}
		if end {
			c.at, c.row = c.at+1, 0
		}
	}
	switch {
	case c.fault == "return nothing":
		return nil
	case c.waits && out.Empty():
		<-ctx.Done()
		return ctx.Err()
	case c.waits:
		return nil
	}
	return io.EOF
}

func counters(fault string, waits bool) *conformance.ReaderSubject {
	return &conformance.ReaderSubject{Name: "counter", Idle: 10 * time.Millisecond, New: func(context.Context) (sdk.Reader, error) {
		return &counter{Numbers: sdk.Numbers{Format: "kit-numbers"}, fault: fault, waits: waits}, nil
	}}
}

func TestReaderKit(t *testing.T) {
	conformance.RunReader(t, counters("", false))
	conformance.RunReader(t, counters("", true))
}

// TestReaderKitNotices holds the kit to what readers do wrong.
func TestReaderKitNotices(t *testing.T) {
	for fault, want := range map[string]string{
		"close twice":              "close and end",
		"start at the first point": "resume for several points",
		"take foreign positions":   "foreign positions",
		"compare without ordinals": "small blocks",
		"print without ordinals":   "small blocks",
		"mark nothing":             "resume for several points",
		"mark one too few":         "resume for several points",
		"mark parts as whole":      "small blocks",
		"fill on":                  "small blocks",
		"leave it open":            "read from the beginning",
		"return nothing":           "read from the beginning",
	} {
		t.Run(fault, func(t *testing.T) {
			var failed []string
			for _, r := range conformance.CheckReader(t.Context(), counters(fault, false)) {
				if r.Err != nil {
					failed = append(failed, r.Case)
					t.Log(r.Case, r.Err)
				}
			}
			if !slices.ContainsFunc(failed, func(name string) bool { return strings.Contains(name, want) }) {
				t.Errorf("got failures in %q, want one in %q", failed, want)
			}
		})
	}
}
