package charset

import (
	_ "embed"
	"encoding/binary"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Decode appends src as UTF-8 to dst and reports whether all of src is valid in
// the character set. After false what was appended is of no use.
type Decode func(dst, src []byte) ([]byte, bool)

// UTF8 reports whether text in the character set is UTF-8 as it stands, so that
// it need only be checked.
func UTF8(charset string) bool {
	return charset == "utf8mb4" || charset == "utf8mb3" || charset == "ascii"
}

// For returns the decoder of a character set other than binary, or nil where
// there is none.
func For(charset string) Decode {
	switch charset {
	case "utf8mb4", "utf8mb3":
		return func(dst, src []byte) ([]byte, bool) { return append(dst, src...), utf8.Valid(src) }
	case "ucs2":
		return ucs2
	case "utf16":
		return func(dst, src []byte) ([]byte, bool) { return decode16(dst, src, binary.BigEndian) }
	case "utf16le":
		return func(dst, src []byte) ([]byte, bool) { return decode16(dst, src, binary.LittleEndian) }
	case "utf32":
		return utf32
	}
	if t := singles()[charset]; t != nil {
		return t.decode
	}
	return multi(charset)
}

// ucs2 is UTF-16 without pairs: the server keeps halves of pairs, which UTF-8
// cannot hold.
func ucs2(dst, src []byte) ([]byte, bool) {
	if len(src)%2 != 0 {
		return dst, false
	}
	for i := 0; i < len(src); i += 2 {
		r := rune(binary.BigEndian.Uint16(src[i:]))
		if utf16.IsSurrogate(r) {
			return dst, false
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, true
}

func decode16(dst, src []byte, order binary.ByteOrder) ([]byte, bool) {
	if len(src)%2 != 0 {
		return dst, false
	}
	for i := 0; i < len(src); i += 2 {
		r := rune(order.Uint16(src[i:]))
		if utf16.IsSurrogate(r) {
			if i+4 > len(src) {
				return dst, false
			}
			i += 2
			if r = utf16.DecodeRune(r, rune(order.Uint16(src[i:]))); r == utf8.RuneError {
				return dst, false
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, true
}

func utf32(dst, src []byte) ([]byte, bool) {
	if len(src)%4 != 0 {
		return dst, false
	}
	for i := 0; i < len(src); i += 4 {
		r := binary.BigEndian.Uint32(src[i:])
		if r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
			return dst, false
		}
		dst = utf8.AppendRune(dst, rune(r))
	}
	return dst, true
}

//go:embed single.txt
var singleList string

type single [256]rune // -1 = not a character

var singles = sync.OnceValue(func() map[string]*single {
	m := map[string]*single{}
	for line := range strings.Lines(singleList) {
		f := strings.Fields(line)
		t := new(single)
		for i := range 256 {
			t[i] = rune(i)
		}
		codes := f[1:]
		for i, c := range codes {
			at := 256 - len(codes) + i
			t[at] = -1
			if v, err := strconv.ParseUint(c, 16, 32); err == nil && v != utf8.RuneError {
				t[at] = rune(v)
			}
		}
		m[f[0]] = t
	}
	return m
})

func (t *single) decode(dst, src []byte) ([]byte, bool) {
	for _, b := range src {
		r := t[b]
		if r < 0 {
			return dst, false
		}
		if r < utf8.RuneSelf {
			dst = append(dst, byte(r))
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst, true
}
