package endpoint

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// tracker follows the resume position through the blocks of one stream.
type tracker struct {
	format  string
	version uint32
	last    sdk.Position
	block   batch.Block
	reg     *batch.Registry
	limits  batch.Limits
}

func newTracker(r sdk.Reader, start sdk.Position, limits batch.Limits) *tracker {
	t := &tracker{last: start, reg: batch.NewRegistry(), limits: limits}
	t.format, t.version = r.PositionFormat()
	return t
}

// place returns the resume points before and after the block. It decodes the
// envelope, so that a reader's fault ends here and not at a writer.
func (t *tracker) place(block []byte) (first, last sdk.Position, err error) {
	if err := t.block.Decode(block, t.reg, t.limits); err != nil {
		return first, last, err
	}
	first = t.last
	for i := range t.block.Txs {
		tx := &t.block.Txs[i]
		switch {
		case !tx.Ends:
			next := tx.Ordinal
			if tx.Count > 0 {
				var e batch.Event
				if err := t.block.Event(tx.First+tx.Count-1, &e); err != nil {
					return first, last, err
				}
				next = e.Ordinal + 1
			}
			t.last = t.position(tx.Start, next)
		case len(tx.End) > 0:
			t.last = t.position(tx.End, 0)
		}
	}
	return first, t.last, nil
}

func (t *tracker) position(source []byte, ordinal uint64) sdk.Position {
	return sdk.Position{Format: t.format, Version: t.version, Source: append([]byte(nil), source...), Ordinal: ordinal}
}

// intersect returns the greatest position at or below all points, the zero
// position when one of them is zero or there are none.
func intersect(p sdk.Positions, points []sdk.Point) (sdk.Position, error) {
	var out sdk.Position
	for i, pt := range points {
		if pt.Position.IsZero() {
			return sdk.Position{}, nil
		}
		if i == 0 {
			out = pt.Position
			continue
		}
		var err error
		if out, err = p.IntersectPositions(out, pt.Position); err != nil {
			return sdk.Position{}, err
		}
	}
	return out, nil
}
