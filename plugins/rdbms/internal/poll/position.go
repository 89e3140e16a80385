package poll

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
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

// Number implements scan.Place.
func (p place) Number() uint64 { return p.step }

// Append implements scan.Place.
func (p place) Append(dst []byte, ordinal uint64) []byte {
	dst = strconv.AppendUint(dst, p.step, 10)
	if ordinal > 0 {
		dst = strconv.AppendUint(append(dst, '+'), ordinal, 10)
	}
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

// Positions are the pure calls of the reader about its positions.
type Positions = scan.Counted[place]

var positions = scan.NewCounted(positionFormat, positionVersion, parsePlace)

var _ sdk.Positions = positions
