package poll

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk"
)

// The notation of positions: 3145728 shop.orders=0a00…&shop.items=… is for each
// table the value and key of the row read last, as key bytes in hex. The number
// orders positions; it grows by 2^20, so that there is room between two of them.
const (
	positionFormat  = "rdbms-poll"
	positionVersion = 1
	stride          = 1 << 20
)

type place struct {
	step uint64
	at   map[string][]byte
}

func (p place) append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, p.step, 10)
	names := make([]string, 0, len(p.at))
	for n := range p.at {
		names = append(names, n)
	}
	slices.Sort(names)
	for i, n := range names {
		dst = append(dst, " &"[min(i, 1)])
		dst = append(append(dst, url.QueryEscape(n)...), '=')
		dst = hex.AppendEncode(dst, p.at[n])
	}
	return dst
}

func parsePlace(text string) (p place, ordinal uint64, err error) {
	bad := fmt.Errorf("%q is not a position of a polled source; one looks like 3145728 shop.orders=0a00", text)
	head, rest, _ := strings.Cut(text, " ")
	head, ord, inside := strings.Cut(head, "+")
	if inside {
		if ordinal, err = strconv.ParseUint(ord, 10, 64); err != nil {
			return p, 0, bad
		}
	}
	if p.step, err = strconv.ParseUint(head, 10, 64); err != nil {
		return p, 0, bad
	}
	p.at = map[string][]byte{}
	for part := range strings.SplitSeq(rest, "&") {
		if part == "" {
			continue
		}
		name, key, ok := strings.Cut(part, "=")
		n, err1 := url.QueryUnescape(name)
		k, err2 := hex.DecodeString(key)
		if !ok || err1 != nil || err2 != nil {
			return p, 0, bad
		}
		p.at[n] = k
	}
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
	text := string(pl.append(nil))
	if p.Ordinal > 0 {
		head, rest, _ := strings.Cut(text, " ")
		text = strings.TrimSpace(head + "+" + strconv.FormatUint(p.Ordinal, 10) + " " + rest)
	}
	return text, nil
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
