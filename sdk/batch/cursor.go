package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// ErrCorrupt is wrapped by every error about bytes that are not a block of
// this format.
var ErrCorrupt = errors.New("corrupt block")

// ErrUnknownSchema is wrapped when an event names a schema whose definition
// was never seen on this stream.
var ErrUnknownSchema = errors.New("unknown schema")

// cursor reads small structures; its first error sticks, so that a decoder
// reads straight on and looks once.
type cursor struct {
	data []byte
	pos  int
	what string
	err  error
	mem  int    // bytes that may still be allocated for lists
	text string // the data once more, for strings that are parts of it; see tx
}

// newCursor returns a cursor over data that allocates no more for lists than mem
// bytes: an item may take two bytes in the data and two hundred in memory.
func newCursor(what string, data []byte, mem int) cursor {
	return cursor{data: data, what: what, mem: mem}
}

func (c *cursor) fail(field, msg string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s, %s at byte %d: %s", ErrCorrupt, c.what, field, c.pos, msg)
	}
}

func (c *cursor) left() int { return len(c.data) - c.pos }

func (c *cursor) end() {
	if c.err == nil && c.pos != len(c.data) {
		c.fail("end", fmt.Sprintf("%d bytes follow", c.left()))
	}
}

func (c *cursor) byte(field string) byte {
	if c.err != nil {
		return 0
	}
	if c.left() < 1 {
		c.fail(field, "cut off")
		return 0
	}
	b := c.data[c.pos]
	c.pos++
	return b
}

func (c *cursor) uvarint(field string) uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.data[c.pos:])
	if n <= 0 {
		c.fail(field, "bad or cut-off varint")
		return 0
	}
	c.pos += n
	return v
}

func (c *cursor) varint(field string) int64 {
	u := c.uvarint(field)
	return int64(u>>1) ^ -int64(u&1)
}

func (c *cursor) uint32(field string) uint32 {
	v := c.uvarint(field)
	if v > math.MaxUint32 {
		c.fail(field, fmt.Sprintf("%d does not fit 32 bits", v))
		return 0
	}
	return uint32(v)
}

// count reads the number of items that follow, each of at least size bytes in the
// data and item bytes in memory.
func (c *cursor) count(field string, size int, item uintptr) int {
	v := c.uvarint(field)
	c.reserve(field, v, size, item)
	if c.err != nil {
		return 0
	}
	return int(v)
}

// reserve fails where n items are more than the bytes at hand can be, or need more
// memory than is allowed.
func (c *cursor) reserve(field string, n uint64, size int, item uintptr) {
	switch {
	case c.err != nil:
	case n > uint64(c.left()/size):
		c.fail(field, fmt.Sprintf("%d items announced, %d bytes left", n, c.left()))
	case item > 0 && n > uint64(c.mem)/uint64(item):
		c.err = fmt.Errorf("%w: %s, %s at byte %d: %d items need more than the %d bytes that are left of the limit", ErrTooLarge, c.what, field, c.pos, n, c.mem)
	default:
		c.mem -= int(n) * int(item)
	}
}

// bool reads a byte that is 0 or 1.
func (c *cursor) bool(field string) bool {
	b := c.byte(field)
	if b > 1 {
		c.fail(field, fmt.Sprintf("byte %d is no truth value", b))
	}
	return b == 1
}

// bytes returns a view of the data, never a copy.
func (c *cursor) bytes(field string) []byte {
	n := c.count(field, 1, 0)
	if c.err != nil {
		return nil
	}
	b := c.data[c.pos : c.pos+n : c.pos+n]
	c.pos += n
	return b
}

func (c *cursor) string(field string) string { return string(c.bytes(field)) }

func (c *cursor) strings(field string) []string {
	n := c.count(field, 1, unsafe.Sizeof(""))
	if n == 0 {
		return nil
	}
	v := make([]string, n)
	for i := range v {
		v[i] = c.string(field)
	}
	return v
}

func (c *cursor) list(field string) [][]byte {
	n := c.count(field, 1, unsafe.Sizeof([]byte(nil)))
	if n == 0 {
		return nil
	}
	v := make([][]byte, n)
	for i := range v {
		v[i] = c.bytes(field)
	}
	return v
}

func (c *cursor) places(field string, limit int) []int {
	n := c.count(field, 1, unsafe.Sizeof(0))
	if n == 0 {
		return nil
	}
	v := make([]int, n)
	for i := range v {
		p := c.uvarint(field)
		if c.err == nil && p >= uint64(limit) {
			c.fail(field, fmt.Sprintf("column %d of %d", p, limit))
		}
		v[i] = int(p)
	}
	return v
}
