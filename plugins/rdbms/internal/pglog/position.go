package pglog

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk"
)

// The notation of positions: 0/16B3748 is a place in the log, by its LSN. ~3 may
// follow, the number of snapshot chunks given out at that place, and
// @7301234567890123456.1, system identifier and timeline of the server, by which
// another server is recognised. +17 names a place after 17 steps of the
// transaction whose commit record is at that LSN.
const (
	positionFormat  = "pg-lsn"
	positionVersion = 1
)

// lsn is a place in the write-ahead log.
type lsn uint64

// String prints it as PostgreSQL does.
func (l lsn) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint32(l)) }

func parseLSN(s string) (lsn, error) {
	a, b, ok := strings.Cut(s, "/")
	x, err1 := strconv.ParseUint(a, 16, 32)
	y, err2 := strconv.ParseUint(b, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("%q is no LSN; one looks like 0/16B3748", s)
	}
	return lsn(x<<32 | y), nil
}

// place is a position without its ordinal. All transactions whose commit record
// begins before lsn are done.
type place struct {
	lsn      lsn
	step     uint64 // chunks of snapshots done there
	system   uint64 // 0 = not said
	timeline uint32
}

func (p place) append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, uint64(p.lsn)>>32, 16)
	dst = append(dst, '/')
	dst = strconv.AppendUint(dst, uint64(uint32(p.lsn)), 16)
	for i := range dst {
		if dst[i] >= 'a' && dst[i] <= 'f' {
			dst[i] -= 'a' - 'A'
		}
	}
	if p.step > 0 {
		dst = strconv.AppendUint(append(dst, '~'), p.step, 10)
	}
	if p.system > 0 {
		dst = strconv.AppendUint(append(dst, '@'), p.system, 10)
		dst = strconv.AppendUint(append(dst, '.'), uint64(p.timeline), 10)
	}
	return dst
}

// String returns the place in the notation of positions.
func (p place) String() string { return string(p.append(nil)) }

func parsePlace(text string) (p place, ordinal uint64, err error) {
	bad := func(why string) (place, uint64, error) {
		return place{}, 0, fmt.Errorf("%q is not a position in the log of PostgreSQL (%s); one looks like 0/16B3748", text, why)
	}
	rest, ord, has := strings.Cut(text, "+")
	if has {
		if ordinal, err = strconv.ParseUint(ord, 10, 64); err != nil {
			return bad("ordinal")
		}
	}
	rest, id, has := strings.Cut(rest, "@")
	if has {
		sys, tli, _ := strings.Cut(id, ".")
		t, err1 := strconv.ParseUint(tli, 10, 32)
		if p.system, err = strconv.ParseUint(sys, 10, 64); err != nil || err1 != nil {
			return bad("system identifier and timeline")
		}
		p.timeline = uint32(t)
	}
	rest, step, has := strings.Cut(rest, "~")
	if has {
		if p.step, err = strconv.ParseUint(step, 10, 64); err != nil {
			return bad("chunks")
		}
	}
	if p.lsn, err = parseLSN(rest); err != nil {
		return bad("LSN")
	}
	return p, ordinal, nil
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.lsn, q.lsn), cmp.Compare(p.step, q.step))
}

// placeOf reads a position; the zero position is none of the log's.
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
	text := pl.String()
	if p.Ordinal > 0 {
		text += "+" + strconv.FormatUint(p.Ordinal, 10)
	}
	return text, nil
}

// ComparePositions implements sdk.Positions. Positions of different systems are
// incomparable; a new timeline of one system goes on counting.
func (Positions) ComparePositions(a, b sdk.Position) (sdk.Order, error) {
	x, err := placeOf(a)
	if err != nil {
		return sdk.Incomparable, err
	}
	y, err := placeOf(b)
	if err != nil {
		return sdk.Incomparable, err
	}
	if x.system != y.system && x.system != 0 && y.system != 0 {
		return sdk.Incomparable, nil
	}
	return [...]sdk.Order{sdk.Before, sdk.Equal, sdk.After}[1+cmp.Or(x.compare(y), cmp.Compare(a.Ordinal, b.Ordinal))], nil
}

// IntersectPositions implements sdk.Positions.
func (p Positions) IntersectPositions(a, b sdk.Position) (sdk.Position, error) {
	o, err := p.ComparePositions(a, b)
	switch {
	case err != nil:
		return sdk.Position{}, err
	case o == sdk.Incomparable:
		return sdk.Position{}, sdk.Faultf(sdk.CodeInvalidPosition, "positions %s and %s are of two systems", a.Source, b.Source)
	case o == sdk.After:
		return b, nil
	}
	return a, nil
}

// UpgradePosition implements sdk.Positions.
func (Positions) UpgradePosition(p sdk.Position) (sdk.Position, error) {
	_, err := placeOf(p)
	return p, err
}
