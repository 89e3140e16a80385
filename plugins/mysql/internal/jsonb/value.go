package jsonb

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrCorrupt is wrapped by every error about bytes that are no document.
var ErrCorrupt = errors.New("corrupt JSON document")

// maxDepth is the nesting that the server allows.
const maxDepth = 100

// Type bytes of values.
const (
	smallObject = 0x00
	largeObject = 0x01
	smallArray  = 0x02
	largeArray  = 0x03
	literal     = 0x04
	int16Value  = 0x05
	uint16Value = 0x06
	int32Value  = 0x07
	uint32Value = 0x08
	int64Value  = 0x09
	uint64Value = 0x0A
	doubleValue = 0x0B
	stringValue = 0x0C
	opaqueValue = 0x0F
)

func corrupt(msg string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(msg, args...))
}

// value is a value of a document: its type and the bytes from its first on.
type value struct {
	kind byte
	data []byte
}

// parse reads a whole document.
func parse(doc []byte) (value, error) {
	if len(doc) == 0 {
		// Rows that a NOT NULL column was added to hold no bytes: the null literal.
		return value{literal, []byte{0}}, nil
	}
	return value{doc[0], doc[1:]}, nil
}

// container is an object or an array.
type container struct {
	data   []byte // its bytes, offsets count from here
	object bool
	n      int
	width  int // of sizes and offsets: 2 or 4
}

func (v value) container() (container, bool, error) {
	if v.kind > largeArray {
		return container{}, false, nil
	}
	c := container{object: v.kind < smallArray, width: 2}
	if v.kind == largeObject || v.kind == largeArray {
		c.width = 4
	}
	if len(v.data) < 2*c.width {
		return c, true, corrupt("container of %d bytes", len(v.data))
	}
	c.data = v.data
	c.n = c.number(0)
	size := c.number(c.width)
	if size > len(v.data) {
		return c, true, corrupt("container of %d bytes, %d are there", size, len(v.data))
	}
	c.data = v.data[:size]
	per := 1 + c.width
	if c.object {
		per += 2 + c.width
	}
	if c.n > (size-2*c.width)/per {
		return c, true, corrupt("%d elements in %d bytes", c.n, size)
	}
	return c, true, nil
}

func (c *container) number(at int) int {
	if c.width == 2 {
		return int(binary.LittleEndian.Uint16(c.data[at:]))
	}
	return int(binary.LittleEndian.Uint32(c.data[at:]))
}

func (c *container) key(i int) ([]byte, error) {
	at := 2*c.width + i*(c.width+2)
	off, n := c.number(at), int(binary.LittleEndian.Uint16(c.data[at+c.width:]))
	if off > len(c.data) || n > len(c.data)-off {
		return nil, corrupt("key %d at %d of %d bytes", i, off, len(c.data))
	}
	return c.data[off : off+n], nil
}

func (c *container) value(i int) (value, error) {
	at := 2 * c.width
	if c.object {
		at += c.n * (c.width + 2)
	}
	at += i * (1 + c.width)
	kind := c.data[at]
	inline := kind == literal || kind == int16Value || kind == uint16Value ||
		c.width == 4 && (kind == int32Value || kind == uint32Value)
	if inline {
		return value{kind, c.data[at+1 : at+1+c.width]}, nil
	}
	off := c.number(at + 1)
	if off >= len(c.data) {
		return value{}, corrupt("value %d at %d of %d bytes", i, off, len(c.data))
	}
	return value{kind, c.data[off:]}, nil
}

// varlen reads the length before strings and opaque values.
func varlen(b []byte) (n, size int, err error) {
	for i := 0; i < 5 && i < len(b); i++ {
		n |= int(b[i]&0x7F) << (7 * i)
		if b[i]&0x80 == 0 {
			if n > len(b)-i-1 {
				return 0, 0, corrupt("%d bytes announced, %d are left", n, len(b)-i-1)
			}
			return n, i + 1, nil
		}
	}
	return 0, 0, corrupt("length cut off")
}

func (v value) need(n int) error {
	if len(v.data) < n {
		return corrupt("value of type %#02x has %d of %d bytes", v.kind, len(v.data), n)
	}
	return nil
}
