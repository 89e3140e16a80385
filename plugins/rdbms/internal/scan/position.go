package scan

import (
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

// Number implements Place.
func (p place) Number() uint64 { return p.step }

// Append implements Place.
func (p place) Append(dst []byte, ordinal uint64) []byte {
	dst = strconv.AppendUint(dst, p.step, 10)
	if ordinal > 0 {
		dst = strconv.AppendUint(append(dst, '+'), ordinal, 10)
	}
	dst = append(dst, ':')
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

// Positions are the pure calls of the reader about its positions.
type Positions = Counted[place]

var positions = NewCounted(positionFormat, positionVersion, parsePlace)

var _ sdk.Positions = positions
