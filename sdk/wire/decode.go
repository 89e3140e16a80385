package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// ErrCorrupt is wrapped by every error about bytes that are not a message of the
// protocol.
var ErrCorrupt = errors.New("corrupt message")

// MaxItems bounds each repeated field, since an empty item takes two bytes in a
// message and a hundred in memory.
const MaxItems = 1 << 20

// reader walks the fields of one message. Its first error sticks.
type reader struct {
	data []byte
	what string
	err  error
	at   int

	num  int // of the current field
	typ  byte
	u    uint64 // value of a varint
	b    []byte // value of a length-delimited field
	seen int    // items of repeated fields
}

func read(what string, data []byte) reader { return reader{what: what, data: data} }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s, field %d, byte %d: %s", ErrCorrupt, r.what, r.num, r.at, fmt.Sprintf(format, args...))
	}
}

// next reads one field; those that the caller does not ask for are passed over.
func (r *reader) next() bool {
	if r.err != nil || r.at == len(r.data) {
		return false
	}
	tag := r.varint()
	if r.err != nil {
		return false
	}
	if tag>>3 == 0 || tag>>3 > 1<<29-1 {
		r.fail("field number %d", tag>>3)
		return false
	}
	r.num, r.typ = int(tag>>3), byte(tag&7)
	switch r.typ {
	case wireVarint:
		r.u = r.varint()
	case wireFixed64:
		r.skip(8)
	case wireFixed32:
		r.skip(4)
	case wireBytes:
		n := r.varint()
		if r.err == nil && n > uint64(len(r.data)-r.at) {
			r.fail("%d bytes announced, %d left", n, len(r.data)-r.at)
		}
		if r.err == nil {
			r.b = r.data[r.at : r.at+int(n) : r.at+int(n)]
			r.at += int(n)
		}
	default:
		r.fail("wire type %d is not of the subset", r.typ)
	}
	return r.err == nil
}

func (r *reader) varint() uint64 {
	v, n := binary.Uvarint(r.data[r.at:])
	if n <= 0 {
		r.fail("varint cut off or too long")
		return 0
	}
	r.at += n
	return v
}

func (r *reader) skip(n int) {
	if len(r.data)-r.at < n {
		r.fail("cut off")
		return
	}
	r.at += n
}

func (r *reader) want(typ byte) bool {
	if r.err == nil && r.typ != typ {
		r.fail("wire type %d, want %d", r.typ, typ)
	}
	return r.err == nil
}

func (r *reader) uint64() uint64 {
	if !r.want(wireVarint) {
		return 0
	}
	return r.u
}

func (r *reader) sint64() int64 {
	u := r.uint64()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) uint32() uint32 {
	u := r.uint64()
	if u > math.MaxUint32 {
		r.fail("%d does not fit 32 bits", u)
		return 0
	}
	return uint32(u)
}

func (r *reader) sint32() int32 {
	v := r.sint64()
	if v != int64(int32(v)) {
		r.fail("%d does not fit 32 bits", v)
		return 0
	}
	return int32(v)
}

func (r *reader) bool() bool { return r.uint64() != 0 }

// bytes is a view of the message.
func (r *reader) bytes() []byte {
	if !r.want(wireBytes) {
		return nil
	}
	return r.b
}

func (r *reader) string() string {
	b := r.bytes()
	if !utf8.Valid(b) {
		r.fail("string is not UTF-8")
		return ""
	}
	return string(b)
}

// message decodes the current field into m.
func (r *reader) message(m Message) {
	if b := r.bytes(); r.err == nil {
		if err := m.Decode(b); err != nil {
			r.err = fmt.Errorf("%s, field %d: %w", r.what, r.num, err)
		}
	}
}

// item counts an item of a repeated field.
func (r *reader) item() {
	if r.seen++; r.seen > MaxItems {
		r.fail("more than %d items", MaxItems)
	}
}

// item decodes the current field as one more item of a repeated message.
func item[T any, P interface {
	*T
	Message
}](r *reader, dst []T,
) []T {
	if r.item(); r.err != nil {
		return dst
	}
	var v T
	r.message(P(&v))
	return append(dst, v)
}
