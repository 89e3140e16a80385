package wire

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/datalink-go/datalink/sdk"
)

// Wire types of the subset.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

func appendTag(dst []byte, num int, typ byte) []byte {
	return binary.AppendUvarint(dst, uint64(num)<<3|uint64(typ))
}

// As in proto3, a scalar that is zero or empty is left out.

func appendUint(dst []byte, num int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.AppendUvarint(appendTag(dst, num, wireVarint), v)
}

func appendSint(dst []byte, num int, v int64) []byte {
	if v == 0 {
		return dst
	}
	return binary.AppendVarint(appendTag(dst, num, wireVarint), v)
}

func appendBool(dst []byte, num int, v bool) []byte {
	if !v {
		return dst
	}
	return append(appendTag(dst, num, wireVarint), 1)
}

func appendBytes(dst []byte, num int, v []byte) []byte {
	if len(v) == 0 {
		return dst
	}
	return appendItem(dst, num, v)
}

func appendString(dst []byte, num int, v string) []byte {
	if v == "" {
		return dst
	}
	return appendStringItem(dst, num, v)
}

// Items of repeated fields are there even when they are zero or empty.

func appendItem(dst []byte, num int, v []byte) []byte {
	dst = binary.AppendUvarint(appendTag(dst, num, wireBytes), uint64(len(v)))
	return append(dst, v...)
}

// appendStringItem replaces bytes that are not UTF-8, which the format forbids in
// strings: a message of a store may hold any.
func appendStringItem(dst []byte, num int, v string) []byte {
	if !utf8.ValidString(v) {
		v = strings.ToValidUTF8(v, "\uFFFD")
	}
	dst = binary.AppendUvarint(appendTag(dst, num, wireBytes), uint64(len(v)))
	return append(dst, v...)
}

func appendStrings(dst []byte, num int, v []string) []byte {
	for _, s := range v {
		dst = appendStringItem(dst, num, s)
	}
	return dst
}

func appendUints(dst []byte, num int, v []uint64) []byte {
	for _, u := range v {
		dst = binary.AppendUvarint(appendTag(dst, num, wireVarint), u)
	}
	return dst
}

// begin opens a nested message; end closes it and puts its length before it. One
// byte is kept for the length; a longer message is moved.
func begin(dst []byte, num int) ([]byte, int) {
	dst = append(appendTag(dst, num, wireBytes), 0)
	return dst, len(dst)
}

func end(dst []byte, at int) []byte {
	n := len(dst) - at
	if n < 0x80 {
		dst[at-1] = byte(n)
		return dst
	}
	var l [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(l[:], uint64(n))
	dst = append(dst, l[:k-1]...)
	copy(dst[at+k-1:], dst[at:at+n])
	copy(dst[at-1:], l[:k])
	return dst
}

func appendMessage(dst []byte, num int, m Message) []byte {
	dst, at := begin(dst, num)
	return end(m.Append(dst), at)
}

// appendPosition leaves out the zero position.
func appendPosition(dst []byte, num int, p sdk.Position) []byte {
	if p.IsZero() && p.Version == 0 {
		return dst
	}
	dst, at := begin(dst, num)
	return end(position(dst, p), at)
}

func position(dst []byte, p sdk.Position) []byte {
	dst = appendString(dst, 1, p.Format)
	dst = appendUint(dst, 2, uint64(p.Version))
	dst = appendBytes(dst, 3, p.Source)
	return appendUint(dst, 4, p.Ordinal)
}
