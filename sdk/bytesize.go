package sdk

import (
	"fmt"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes that a configuration writes as a number or with
// a unit: 4096, "64MiB", "10 MB".
type ByteSize int64

var sizeUnits = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"kB", 1e3},
	{"KB", 1e3},
	{"B", 1},
}

// ParseByteSize reads a number of bytes with or without a unit.
func ParseByteSize(s string) (ByteSize, error) {
	digits, unit := s, int64(1)
	for _, u := range sizeUnits {
		if d, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = strings.TrimSuffix(d, " "), u.size
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(n) > (1<<63-1)/unit {
		return 0, fmt.Errorf("size %q is not a number of bytes such as 4096, 64KiB or 1GiB", s)
	}
	return ByteSize(int64(n) * unit), nil
}

// String returns the size with the greatest binary unit that divides it.
func (b ByteSize) String() string {
	for _, u := range sizeUnits[:4] {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Strings is a list that a configuration may write as one text alone.
type Strings []string
