package scan

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk"
)

// The notation of positions of a full copy: 3145728:0a000000:shop.orders means
// that of shop.orders the rows up to the key 0a000000 (key bytes) were read and all
// tables that sort before it; a key of - means all rows of the table. The number
// orders positions: it grows by 2^20 with each chunk, so that there is room
// between two of them when chunks are cut anew.
const (
	positionFormat  = "rdbms-scan"
	positionVersion = 1
	stride          = 1 << 20
)

type place struct {
	step  uint64
	table string // "" = before the first one
	key   []byte // nil = all of the table
}

func (p place) append(dst []byte) []byte {
	dst = append(strconv.AppendUint(dst, p.step, 10), ':')
	if p.key == nil {
		dst = append(dst, '-')
	} else {
		dst = hex.AppendEncode(dst, p.key)
	}
	return append(append(dst, ':'), p.table...)
}

func parsePlace(text string) (p place, ordinal uint64, err error) {
	bad := fmt.Errorf("%q is not a position of a copy; one looks like 3145728:0a000000:shop.orders", text)
	head, table, ok := strings.Cut(text, ":")
	key, table, ok2 := strings.Cut(table, ":")
	if !ok || !ok2 {
		return p, 0, bad
	}
	head, ord, inside := strings.Cut(head, "+")
	if inside {
		if ordinal, err = strconv.ParseUint(ord, 10, 64); err != nil {
			return p, 0, bad
		}
	}
	if p.step, err = strconv.ParseUint(head, 10, 64); err != nil {
		return p, 0, bad
	}
	if key != "-" {
		if p.key, err = hex.DecodeString(key); err != nil || len(p.key) == 0 {
			return p, 0, bad
		}
	}
	p.table = table
	return p, ordinal, nil
}

func placeOf(p sdk.Position) (place, error) {
	if p.Format != positionFormat || p.Version != positionVersion {
		return place{}, sdk.Faultf(sdk.CodeInvalidPosition, "position of format %q version %d, this reader has %q version %d", p.Format, p.Version, positionFormat, positionVersion)
	}
	pl, _, err := parsePlace(string(p.Source))
	if err != nil {
		return pl, sdk.Faultf(sdk.CodeInvalidPosition, "%v", err)
	}
	return pl, nil
}

// Positions are the pure calls of the reader about its positions.
type Positions struct{}

var _ sdk.Positions = Positions{}

// PositionFormat is of sdk.Reader.
func (Positions) PositionFormat() (format string, version uint32) {
	return positionFormat, positionVersion
}

// ParsePosition implements sdk.Positions.
func (Positions) ParsePosition(text string) (sdk.Position, error) {
	p, ord, err := parsePlace(strings.TrimSpace(text))
	if err != nil {
		return sdk.Position{}, sdk.Faultf(sdk.CodeInvalidPosition, "%v", err)
	}
	return sdk.Position{Format: positionFormat, Version: positionVersion, Source: p.append(nil), Ordinal: ord}, nil
}

// FormatPosition implements sdk.Positions.
func (Positions) FormatPosition(p sdk.Position) (string, error) {
	pl, err := placeOf(p)
	if err != nil {
		return "", err
	}
	text := pl.append(nil)
	if p.Ordinal > 0 {
		head, rest, _ := strings.Cut(string(text), ":")
		return head + "+" + strconv.FormatUint(p.Ordinal, 10) + ":" + rest, nil
	}
	return string(text), nil
}

// ComparePositions implements sdk.Positions.
func (Positions) ComparePositions(a, b sdk.Position) (sdk.Order, error) {
	x, err := placeOf(a)
	if err != nil {
		return sdk.Incomparable, err
	}
	y, err := placeOf(b)
	if err != nil {
		return sdk.Incomparable, err
	}
	return [...]sdk.Order{sdk.Before, sdk.Equal, sdk.After}[1+cmp.Or(cmp.Compare(x.step, y.step), cmp.Compare(a.Ordinal, b.Ordinal))], nil
}

// IntersectPositions implements sdk.Positions.
func (p Positions) IntersectPositions(a, b sdk.Position) (sdk.Position, error) {
	o, err := p.ComparePositions(a, b)
	if o == sdk.After {
		return b, err
	}
	return a, err
}

// UpgradePosition implements sdk.Positions.
func (Positions) UpgradePosition(p sdk.Position) (sdk.Position, error) {
	_, err := placeOf(p)
	return p, err
}
