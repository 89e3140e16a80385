package batch

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Dim is one dimension of an array: its length and the number of its first
// element (PostgreSQL may begin anywhere; 1 is usual).
type Dim struct{ Len, Lower int }

// Pair is one entry of a Map value. A nil Value is NULL.
type Pair struct{ Key, Value []byte }

// AppendArray appends a value of type Array. Elems are the elements in row-major
// order, each encoded as a value of the element type stands in an image (with its
// length where the type has no width); nil is NULL. An empty array has no
// dimension. It panics where elems are not as many as dims say.
func AppendArray(dst []byte, dims []Dim, elems [][]byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(dims)))
	n := 0
	for i, d := range dims {
		dst = binary.AppendUvarint(dst, uint64(d.Len))
		dst = binary.AppendVarint(dst, int64(d.Lower))
		if n *= d.Len; i == 0 {
			n = d.Len
		}
	}
	if n != len(elems) {
		panic(fmt.Sprintf("batch: %d elements for an array of %v", len(elems), dims))
	}
	at := len(dst)
	dst = append(dst, make([]byte, (n+7)/8)...)
	for i, e := range elems {
		if e == nil {
			dst[at+(i>>3)] |= 1 << (i & 7)
		}
		dst = append(dst, e...)
	}
	return dst
}

// maxDims bounds the dimensions of an array.
const maxDims = 64

// DecodeArray reads a value of type Array whose column has the element type elem.
// The elements refer to data. Errors wrap ErrCorrupt or ErrTooLarge.
func DecodeArray(data []byte, elem Type) ([]Dim, []Value, error) {
	c := newCursor("array of "+elem.String(), data, DefaultRecord)
	if !elem.elemental() {
		c.fail("element type", "arrays of it do not exist")
	}
	nd := c.count("dimensions", 2, unsafe.Sizeof(Dim{}))
	if nd > maxDims {
		c.fail("dimensions", fmt.Sprintf("%d, at most %d", nd, maxDims))
	}
	if c.err != nil {
		return nil, nil, c.err
	}
	dims := make([]Dim, nd)
	n := uint64(0)
	for i := range dims {
		l := c.uint32("length")
		dims[i] = Dim{Len: int(l), Lower: int(c.varint("lower bound"))}
		if i == 0 {
			n = 1
		}
		// No array has more elements than there are bits left.
		if n *= uint64(l); n > uint64(len(data))*8 {
			c.fail("length", fmt.Sprintf("%d elements in %d bytes", n, len(data)))
		}
	}
	if c.err != nil {
		return nil, nil, c.err
	}
	if uint64(c.left()) < (n+7)/8 {
		c.fail("bitmap", "cut off")
		return nil, nil, c.err
	}
	null := data[c.pos : c.pos+int(n+7)/8]
	c.pos += len(null)
	if n%8 != 0 && null[n/8]>>(n%8) != 0 {
		c.fail("bitmap", "bits behind the last element")
	}
	if n > uint64(c.mem)/uint64(unsafe.Sizeof(Value{})) {
		return nil, nil, fmt.Errorf("%w: array of %d elements", ErrTooLarge, n)
	}
	values := make([]Value, n)
	for i := range values {
		switch w := elem.Width(); {
		case bit(null, i):
			values[i].State = Null
		case w == 0:
			values[i] = Value{State: Present, bytes: c.bytes("element")}
		case c.left() < w:
			c.fail("element", "cut off")
		case c.err == nil:
			if !fixed(&values[i], elem, data[c.pos:c.pos+w:c.pos+w]) {
				c.fail("element", "no value of its type")
			}
			c.pos += w
		}
	}
	c.end()
	if c.err != nil {
		return nil, nil, c.err
	}
	return dims, values, nil
}

// AppendMap appends a value of type Map.
func AppendMap(dst []byte, pairs []Pair) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(pairs)))
	for _, p := range pairs {
		dst = appendBytes(dst, p.Key)
		dst = appendBool(dst, p.Value != nil)
		if p.Value != nil {
			dst = appendBytes(dst, p.Value)
		}
	}
	return dst
}

// DecodeMap reads a value of type Map; the pairs refer to data. Errors wrap
// ErrCorrupt or ErrTooLarge.
func DecodeMap(data []byte) ([]Pair, error) {
	c := newCursor("map", data, DefaultRecord)
	n := c.count("pairs", 2, unsafe.Sizeof(Pair{}))
	pairs := make([]Pair, n)
	for i := range pairs {
		pairs[i].Key = c.bytes("key")
		if c.bool("value flag") {
			pairs[i].Value = c.bytes("value")
		}
	}
	c.end()
	if c.err != nil {
		return nil, c.err
	}
	return pairs, nil
}
