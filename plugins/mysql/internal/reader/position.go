package reader

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk"
)

// The notation of positions: mysql-bin.000003:1234 is offset 1234 of that file.
// @97.1764530401 may follow, server id and creation time of the file, by which a
// file of the same name but another log is recognised, and +17 for a place after
// 17 changes of the transaction that begins there.
const (
	positionFormat  = "mysql-files"
	positionVersion = 1
)

// place is an offset in a file of a log.
type place struct {
	base            string
	number          uint64
	digits          int
	off             int64
	known           bool // server and created are
	server, created uint32
}

func (p *place) append(dst []byte) []byte {
	if p.digits == 0 {
		dst = append(dst, p.base...)
	} else {
		dst = append(append(dst, p.base...), '.')
		at := len(dst)
		dst = strconv.AppendUint(dst, p.number, 10)
		if pad := p.digits - (len(dst) - at); pad > 0 {
			dst = append(dst, "00000000000000000000"[:min(pad, 20)]...)
			copy(dst[at+pad:], dst[at:])
			for i := range pad {
				dst[at+i] = '0'
			}
		}
	}
	dst = strconv.AppendInt(append(dst, ':'), p.off, 10)
	if p.known {
		dst = strconv.AppendUint(append(dst, '@'), uint64(p.server), 10)
		dst = strconv.AppendUint(append(dst, '.'), uint64(p.created), 10)
	}
	return dst
}

// String returns the place in the notation of positions.
func (p *place) String() string { return string(p.append(nil)) }

func parsePlace(s string) (p place, ordinal uint64, err error) {
	bad := func(why string) (place, uint64, error) {
		return place{}, 0, fmt.Errorf("%q is not a position of binary log files (%s); one looks like mysql-bin.000003:1234", s, why)
	}
	i := strings.LastIndexByte(s, ':')
	if i < 1 {
		return bad("no file and offset")
	}
	name, rest := s[:i], s[i+1:]
	if strings.ContainsAny(name, "/\x00") {
		return bad("a file is named without its folder")
	}
	rest, ord, has := strings.Cut(rest, "+")
	if has {
		if ordinal, err = strconv.ParseUint(ord, 10, 64); err != nil {
			return bad("ordinal")
		}
	}
	off, id, has := strings.Cut(rest, "@")
	if has {
		server, created, _ := strings.Cut(id, ".")
		a, err1 := strconv.ParseUint(server, 10, 32)
		b, err2 := strconv.ParseUint(created, 10, 32)
		if err1 != nil || err2 != nil {
			return bad("identity of the file")
		}
		p.known, p.server, p.created = true, uint32(a), uint32(b)
	}
	if p.off, err = strconv.ParseInt(off, 10, 64); err != nil || p.off < 0 {
		return bad("offset")
	}
	p.base, p.number, p.digits = binlog.SplitName(name)
	return p, ordinal, nil
}

// name returns the name of the file.
func (p *place) name() string { return binlog.FileName(p.base, p.number, p.digits) }

func (p *place) setName(name string) { p.base, p.number, p.digits = binlog.SplitName(name) }

// order compares places of one log.
func (p *place) order(q *place) int {
	return cmp.Or(cmp.Compare(p.number, q.number), cmp.Compare(p.off, q.off))
}

// sameLog reports whether both places can be of one log: the same base name, and
// the same file behind the same name.
func (p *place) sameLog(q *place) bool {
	if p.base != q.base || (p.digits == 0) != (q.digits == 0) {
		return false
	}
	return p.number != q.number || !p.known || !q.known || p.server == q.server && p.created == q.created
}

func invalidPosition(format string, args ...any) error {
	return sdk.Faultf(sdk.CodeInvalidPosition, format, args...)
}

func placeOf(pos sdk.Position) (place, error) {
	if pos.Format != positionFormat || pos.Version != positionVersion {
		return place{}, invalidPosition("position of format %q version %d, this reader has %q version %d", pos.Format, pos.Version, positionFormat, positionVersion)
	}
	p, ord, err := parsePlace(string(pos.Source))
	if err == nil && ord != 0 {
		err = fmt.Errorf("position %q has an ordinal in its source part", pos.Source)
	}
	if err != nil {
		return place{}, invalidPosition("%v", err)
	}
	return p, nil
}

func (p *place) position(ordinal uint64) sdk.Position {
	return sdk.Position{Format: positionFormat, Version: positionVersion, Source: p.append(nil), Ordinal: ordinal}
}

// ParsePosition reads the printable form.
func (r *Reader) ParsePosition(text string) (sdk.Position, error) {
	if r.live != nil {
		return parseLive(text)
	}
	p, ord, err := parsePlace(strings.TrimSpace(text))
	if err != nil {
		return sdk.Position{}, invalidPosition("%v", err)
	}
	return p.position(ord), nil
}

// FormatPosition returns the printable form.
func (r *Reader) FormatPosition(pos sdk.Position) (string, error) {
	text, err := r.canonical(pos)
	if err != nil {
		return "", err
	}
	if pos.Ordinal > 0 {
		text = strconv.AppendUint(append(text, '+'), pos.Ordinal, 10)
	}
	return string(text), nil
}

func (r *Reader) canonical(pos sdk.Position) ([]byte, error) {
	if r.live != nil {
		s, err := spotOf(pos)
		return s.append(nil), err
	}
	p, err := placeOf(pos)
	return p.append(nil), err
}

// ComparePositions says which of two positions comes first. Places of different
// logs are incomparable, and sets that each hold what the other lacks.
func (r *Reader) ComparePositions(a, b sdk.Position) (sdk.Order, error) {
	if r.live != nil {
		return compareSpots(a, b)
	}
	return comparePlaces(a, b)
}

// IntersectPositions returns the greatest position at or below both.
func (r *Reader) IntersectPositions(a, b sdk.Position) (sdk.Position, error) {
	if r.live != nil {
		return intersectSpots(a, b)
	}
	return intersectPlaces(a, b)
}

// comparePlaces compares places of files; those of different logs are incomparable.
func comparePlaces(a, b sdk.Position) (sdk.Order, error) {
	switch {
	case a.IsZero() && b.IsZero():
		return sdk.Equal, nil
	case a.IsZero():
		return sdk.Before, nil
	case b.IsZero():
		return sdk.After, nil
	}
	p, err := placeOf(a)
	if err != nil {
		return sdk.Incomparable, err
	}
	q, err := placeOf(b)
	if err != nil {
		return sdk.Incomparable, err
	}
	if !p.sameLog(&q) {
		return sdk.Incomparable, nil
	}
	switch cmp.Or(p.order(&q), cmp.Compare(a.Ordinal, b.Ordinal)) {
	case -1:
		return sdk.Before, nil
	case 1:
		return sdk.After, nil
	}
	return sdk.Equal, nil
}

// intersectPlaces returns the lower of two positions of one log.
func intersectPlaces(a, b sdk.Position) (sdk.Position, error) {
	o, err := comparePlaces(a, b)
	if err != nil {
		return sdk.Position{}, err
	}
	switch o {
	case sdk.Incomparable:
		return sdk.Position{}, invalidPosition("positions %s and %s are of different logs", a.Source, b.Source)
	case sdk.After:
		return b, nil
	}
	return a, nil
}

// UpgradePosition returns positions of this version as they are; there is no
// older one.
func (r *Reader) UpgradePosition(pos sdk.Position) (sdk.Position, error) {
	_, err := r.canonical(pos)
	return pos, err
}

// PositionFormat names the notation and its version.
func (r *Reader) PositionFormat() (format string, version uint32) {
	if r.live != nil {
		return liveFormat, liveVersion
	}
	return positionFormat, positionVersion
}
