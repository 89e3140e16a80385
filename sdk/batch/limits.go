package batch

import (
	"errors"
	"fmt"
	"math"
)

// ErrTooLarge is wrapped when a record or a block exceeds its limit.
var ErrTooLarge = errors.New("too large")

// Limits bound what a block may hold. The zero value means the defaults.
type Limits struct {
	Block  int // bytes of a block at most, and of what its decoding allocates; 0 = 128 MiB
	Record int // bytes of one event at most; 0 = 64 MiB
	Full   int // bytes at which Builder.Full says so; 0 = 256 KiB
	Events int // events at which Builder.Full says so; 0 = 1024
}

// Defaults of Limits.
const (
	DefaultBlock  = 128 << 20
	DefaultRecord = 64 << 20
	DefaultFull   = 256 << 10
	DefaultEvents = 1024
)

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		v *int
		d int
	}{{&l.Block, DefaultBlock}, {&l.Record, DefaultRecord}, {&l.Full, DefaultFull}, {&l.Events, DefaultEvents}} {
		if *f.v <= 0 {
			*f.v = f.d
		}
	}
	// Places in a block are 32 bits wide.
	l.Block = min(l.Block, math.MaxInt32)
	return l
}

func tooLarge(what string, got, limit int) error {
	return fmt.Errorf("%w: %s of %d bytes, the limit is %d", ErrTooLarge, what, got, limit)
}
