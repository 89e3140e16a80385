package scan

import (
	"cmp"
	"strings"

	"github.com/datalink-go/datalink/sdk"
)

// Place is where a reader stands that counts its places: the number orders them.
type Place interface {
	Number() uint64
	// Append writes the place; an ordinal above 0 goes behind its number, as +ORDINAL.
	Append(dst []byte, ordinal uint64) []byte
}

// Counted are the pure calls about the positions of such a reader, as sdk.Numbers
// are for places that are nothing but a number.
type Counted[P Place] struct {
	format  string
	version uint32
	parse   func(text string) (p P, ordinal uint64, err error)
}

// NewCounted returns the calls for places that parse reads.
func NewCounted[P Place](format string, version uint32, parse func(text string) (P, uint64, error)) Counted[P] {
	return Counted[P]{format: format, version: version, parse: parse}
}

// PositionFormat is of sdk.Reader.
func (c Counted[P]) PositionFormat() (format string, version uint32) { return c.format, c.version }

// Place reads a position.
func (c Counted[P]) Place(p sdk.Position) (P, error) {
	var none P
	if p.Format != c.format || p.Version != c.version {
		return none, sdk.Faultf(sdk.CodeInvalidPosition, "position of format %q version %d, this reader has %q version %d", p.Format, p.Version, c.format, c.version)
	}
	pl, _, err := c.parse(string(p.Source))
	if err != nil {
		return none, sdk.Faultf(sdk.CodeInvalidPosition, "%v", err)
	}
	return pl, nil
}

// ParsePosition implements sdk.Positions.
func (c Counted[P]) ParsePosition(text string) (sdk.Position, error) {
	p, ord, err := c.parse(strings.TrimSpace(text))
	if err != nil {
		return sdk.Position{}, sdk.Faultf(sdk.CodeInvalidPosition, "%v", err)
	}
	return sdk.Position{Format: c.format, Version: c.version, Source: p.Append(nil, 0), Ordinal: ord}, nil
}

// FormatPosition implements sdk.Positions.
func (c Counted[P]) FormatPosition(p sdk.Position) (string, error) {
	pl, err := c.Place(p)
	if err != nil {
		return "", err
	}
	return string(pl.Append(nil, p.Ordinal)), nil
}

// ComparePositions implements sdk.Positions.
func (c Counted[P]) ComparePositions(a, b sdk.Position) (sdk.Order, error) {
	x, err := c.Place(a)
	if err != nil {
		return sdk.Incomparable, err
	}
	y, err := c.Place(b)
	if err != nil {
		return sdk.Incomparable, err
	}
	return [...]sdk.Order{sdk.Before, sdk.Equal, sdk.After}[1+cmp.Or(cmp.Compare(x.Number(), y.Number()), cmp.Compare(a.Ordinal, b.Ordinal))], nil
}

// IntersectPositions implements sdk.Positions.
func (c Counted[P]) IntersectPositions(a, b sdk.Position) (sdk.Position, error) {
	o, err := c.ComparePositions(a, b)
	if o == sdk.After {
		return b, err
	}
	return a, err
}

// UpgradePosition implements sdk.Positions.
func (c Counted[P]) UpgradePosition(p sdk.Position) (sdk.Position, error) {
	_, err := c.Place(p)
	return p, err
}
