package sdk

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Numbers are the positions of a source whose places are numbers that only grow:
// lines, offsets, sequence numbers. A Reader embeds it and has all of Positions
// and PositionFormat:
//
//	type reader struct {
//		sdk.Numbers
//		points sdk.NumberPoints
//		…
//	}
//
// The number of a position is what lies before it: after line 3 comes position 3.
type Numbers struct {
	Format string // names the notation, e.g. "csv-lines"; it is stored, so never change it
	Unit   string // printed before the number: "line" makes "line 3"; "" = the number alone
}

const numbersVersion = 1

// PositionFormat is of Reader.
func (n Numbers) PositionFormat() (format string, version uint32) { return n.Format, numbersVersion }

// Source returns the bytes of a number, as EndTx and Tx.Start take them.
func (n Numbers) Source(number uint64) []byte { return strconv.AppendUint(nil, number, 10) }

// Number returns the number of a position and how many changes of the transaction
// after it are done. The zero position is 0.
func (n Numbers) Number(p Position) (number, ordinal uint64, err error) {
	if p.IsZero() {
		return 0, 0, nil
	}
	if p.Format != n.Format || p.Version != numbersVersion {
		return 0, 0, Faultf(CodeInvalidPosition, "position of format %q version %d, this reader has %q version %d", p.Format, p.Version, n.Format, numbersVersion)
	}
	number, err = strconv.ParseUint(string(p.Source), 10, 64)
	if err != nil {
		return 0, 0, Faultf(CodeInvalidPosition, "position %q: expected a number", p.Source)
	}
	return number, p.Ordinal, nil
}

// ParsePosition implements Positions.
func (n Numbers) ParsePosition(text string) (Position, error) {
	number, ordinal, inside := strings.Cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), n.Unit)), "+")
	v, err := strconv.ParseUint(number, 10, 64)
	var o uint64
	if err == nil && inside {
		o, err = strconv.ParseUint(ordinal, 10, 64)
	}
	if err != nil {
		return Position{}, Faultf(CodeInvalidPosition, "position: found %q, expected a number such as %q", text, n.text(17, 0))
	}
	return Position{Format: n.Format, Version: numbersVersion, Source: n.Source(v), Ordinal: o}, nil
}

// FormatPosition implements Positions.
func (n Numbers) FormatPosition(p Position) (string, error) {
	number, ordinal, err := n.Number(p)
	return n.text(number, ordinal), err
}

func (n Numbers) text(number, ordinal uint64) string {
	s := strings.TrimPrefix(n.Unit+" "+strconv.FormatUint(number, 10), " ")
	if ordinal > 0 {
		s += "+" + strconv.FormatUint(ordinal, 10)
	}
	return s
}

// ComparePositions implements Positions.
func (n Numbers) ComparePositions(a, b Position) (Order, error) {
	x, i, err := n.Number(a)
	if err != nil {
		return Incomparable, err
	}
	y, j, err := n.Number(b)
	if err != nil {
		return Incomparable, err
	}
	return [...]Order{Before, Equal, After}[1+cmp.Or(cmp.Compare(x, y), cmp.Compare(i, j))], nil
}

// IntersectPositions implements Positions.
func (n Numbers) IntersectPositions(a, b Position) (Position, error) {
	o, err := n.ComparePositions(a, b)
	if o == After {
		return b, err
	}
	return a, err
}

// UpgradePosition implements Positions.
func (n Numbers) UpgradePosition(p Position) (Position, error) {
	_, _, err := n.Number(p)
	return p, err
}

// NumberPoints are the progress points given to Reader.Open.
type NumberPoints []numberPoint

type numberPoint struct{ number, ordinal uint64 }

// Points reads the points given to Open.
func (n Numbers) Points(points []Point) (NumberPoints, error) {
	out := make(NumberPoints, len(points))
	for i, p := range points {
		number, ordinal, err := n.Number(p.Position)
		if err != nil {
			return nil, err
		}
		out[i] = numberPoint{number, ordinal}
	}
	return out, nil
}

// Start returns the number to begin at: the least one, 0 where there is no point.
func (p NumberPoints) Start() uint64 {
	if len(p) == 0 {
		return 0
	}
	least := p[0].number
	for _, x := range p {
		least = min(least, x.number)
	}
	return least
}

// Covers appends, for the transaction between two numbers, the points that hold it
// already or in part: what Tx.Covers takes.
func (p NumberPoints) Covers(dst []batch.Cover, from, to uint64) []batch.Cover {
	for i, x := range p {
		switch {
		case x.number >= to:
			dst = append(dst, batch.Cover{Point: i})
		case x.number == from && x.ordinal > 0:
			dst = append(dst, batch.Cover{Point: i, Upto: x.ordinal})
		}
	}
	return dst
}
