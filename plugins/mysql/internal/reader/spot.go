package reader

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/gtid"
	"github.com/datalink-go/datalink/sdk"
)

// The notation of positions in the log of a server: a GTID set of MySQL,
// 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5, or of MariaDB, 0-1-5,1-2-7; without
// GTIDs a file, an offset and the server they are of, binlog.000012:4567@UUID;
// none before everything. ~N follows for the N-th step of a snapshot there, /GTID
// for a place inside of the transaction with that id, and +17 for the changes of
// it that are done.
const (
	liveFormat  = "mysql"
	liveVersion = 1
)

// kind is what a spot is made of.
type kind uint8

const (
	spotNone kind = iota
	spotSet
	spotDomains
	spotFile
)

// spot is a place in the log of a server.
type spot struct {
	kind   kind
	set    gtid.Set
	dom    gtid.Domains
	file   place
	server string // the one that file is of; "" = not said
	step   uint64
	inside string // the transaction that an ordinal counts in
}

func (s *spot) String() string { return string(s.append(nil)) }

func (s *spot) append(dst []byte) []byte {
	at := len(dst)
	switch s.kind {
	case spotSet:
		dst = s.set.Append(dst)
	case spotDomains:
		dst = s.dom.Append(dst)
	case spotFile:
		dst = s.file.append(dst)
		if s.server != "" {
			dst = append(append(dst, '@'), s.server...)
		}
	}
	if len(dst) == at {
		dst = append(dst, "none"...)
	}
	if s.step > 0 {
		dst = strconv.AppendUint(append(dst, '~'), s.step, 10)
	}
	if s.inside != "" {
		dst = append(append(dst, '/'), s.inside...)
	}
	return dst
}

func parseSpot(text string) (s spot, err error) {
	body, inside, has := strings.Cut(strings.TrimSpace(text), "/")
	if s.inside = inside; has && inside == "" {
		return s, fmt.Errorf("%q is not a position: nothing follows /", text)
	}
	body, step, has := strings.Cut(body, "~")
	if has {
		if s.step, err = strconv.ParseUint(step, 10, 64); err != nil || s.step == 0 {
			return s, fmt.Errorf("%q is not a position: step %q", text, step)
		}
	}
	switch {
	case body == "none":
	case looksLikeDomains(body):
		s.kind = spotDomains
		s.dom, err = gtid.ParseDomains(body)
	case looksLikeSet(body):
		s.kind = spotSet
		s.set, err = gtid.ParseSet(body)
	default:
		s.kind = spotFile
		where, server, _ := strings.Cut(body, "@")
		var ord uint64
		if s.file, ord, err = parsePlace(where); err == nil && (ord > 0 || s.file.digits == 0) {
			err = fmt.Errorf("%q is not a position of a server's log; one looks like UUID:1-5, 0-1-5 or binlog.000003:1234", text)
		}
		s.server = server
	}
	if err != nil {
		return spot{}, fmt.Errorf("position %q: %w", text, err)
	}
	return s, nil
}

func looksLikeDomains(s string) bool {
	first, _, _ := strings.Cut(s, ",")
	_, err := gtid.ParseGTID(first)
	return err == nil
}

func looksLikeSet(s string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(s), ":")
	_, err := gtid.ParseUUID(first)
	return err == nil
}

// spotOf reads a position of this notation.
func spotOf(p sdk.Position) (spot, error) {
	if p.Format != liveFormat || p.Version != liveVersion {
		return spot{}, invalidPosition("position of format %q version %d, this reader of a server has %q version %d", p.Format, p.Version, liveFormat, liveVersion)
	}
	s, err := parseSpot(string(p.Source))
	if err != nil {
		return s, invalidPosition("%v", err)
	}
	return s, nil
}

// same reports whether two spots can be compared.
func (s *spot) same(o *spot) bool {
	if s.kind == spotNone || o.kind == spotNone {
		return true
	}
	return s.kind == o.kind && (s.kind != spotFile || s.file.base == o.file.base && (s.server == o.server || s.server == "" || o.server == ""))
}

// holds reports whether the whole transactions of o are in s.
func (s *spot) holds(o *spot) bool {
	switch {
	case o.kind == spotNone:
		return true
	case s.kind == spotNone:
		return o.kind == spotSet && o.set.IsEmpty() || o.kind == spotDomains && o.dom.IsEmpty()
	case s.kind == spotSet:
		return o.set.Within(&s.set)
	case s.kind == spotDomains:
		return o.dom.Within(&s.dom)
	}
	return s.file.order(&o.file) >= 0
}

// has reports whether the transaction with that printed id is in s.
func (s *spot) has(id string) bool {
	switch s.kind {
	case spotSet:
		one, err := gtid.ParseSet(id)
		return err == nil && !one.IsEmpty() && one.Within(&s.set)
	case spotDomains:
		g, err := gtid.ParseGTID(id)
		return err == nil && s.dom.Contains(g)
	}
	return false
}

// within reports whether all of (s, n) is in (o, m), n and m the ordinals.
func (s *spot) within(n uint64, o *spot, m uint64) bool {
	if !o.holds(s) {
		return false
	}
	if s.inside != "" && n > 0 {
		if !o.has(s.inside) && (s.inside != o.inside || m < n) {
			return false
		}
	}
	if s.holds(o) { // the same whole transactions: steps decide
		if s.step != o.step {
			return s.step < o.step
		}
		if s.inside == "" && (o.inside == "" || m == 0) {
			return n <= m
		}
	}
	return true
}

func compareSpots(a, b sdk.Position) (sdk.Order, error) {
	switch {
	case a.IsZero() && b.IsZero():
		return sdk.Equal, nil
	case a.IsZero():
		return sdk.Before, nil
	case b.IsZero():
		return sdk.After, nil
	}
	p, err := spotOf(a)
	if err != nil {
		return sdk.Incomparable, err
	}
	q, err := spotOf(b)
	if err != nil {
		return sdk.Incomparable, err
	}
	if !p.same(&q) {
		return sdk.Incomparable, nil
	}
	less, more := p.within(a.Ordinal, &q, b.Ordinal), q.within(b.Ordinal, &p, a.Ordinal)
	switch {
	case less && more:
		return sdk.Equal, nil
	case less:
		return sdk.Before, nil
	case more:
		return sdk.After, nil
	}
	return sdk.Incomparable, nil
}

func intersectSpots(a, b sdk.Position) (sdk.Position, error) {
	o, err := compareSpots(a, b)
	if err != nil {
		return sdk.Position{}, err
	}
	switch o {
	case sdk.Before, sdk.Equal:
		return a, nil
	case sdk.After:
		return b, nil
	}
	p, _ := spotOf(a)
	q, _ := spotOf(b)
	if !p.same(&q) || p.kind == spotFile {
		return sdk.Position{}, sdk.Faultf(sdk.CodeInvalidPosition, "positions %s and %s are of different servers and hold no GTIDs", a.Source, b.Source).Suggest("let the task go on at one of them, by datalink task position")
	}
	both := spot{kind: p.kind}
	both.set, both.dom = p.set.Intersect(&q.set), p.dom.Intersect(&q.dom)
	ordinal := uint64(0)
	switch { // a transaction that is done in part in one and wholly, or further, in the other
	case p.inside != "" && p.inside == q.inside:
		both.inside, ordinal = p.inside, min(a.Ordinal, b.Ordinal)
	case p.inside != "" && q.has(p.inside):
		both.inside, ordinal = p.inside, a.Ordinal
	case q.inside != "" && p.has(q.inside):
		both.inside, ordinal = q.inside, b.Ordinal
	}
	return both.position(ordinal), nil
}

func (s *spot) position(ordinal uint64) sdk.Position {
	return sdk.Position{Format: liveFormat, Version: liveVersion, Source: s.append(nil), Ordinal: ordinal}
}

// parseLive reads the printable form, which ends in +ORDINAL inside of something.
func parseLive(text string) (sdk.Position, error) {
	body, ord, has := strings.Cut(strings.TrimSpace(text), "+")
	n := uint64(0)
	if has {
		var err error
		if n, err = strconv.ParseUint(ord, 10, 64); err != nil || n == 0 {
			return sdk.Position{}, invalidPosition("position %q: ordinal %q", text, ord)
		}
	}
	s, err := parseSpot(body)
	if err != nil {
		return sdk.Position{}, invalidPosition("%v", err)
	}
	return s.position(n), nil
}
