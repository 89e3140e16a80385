package charset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// ErrNotInCharset is wrapped by Encode where a character set lacks a character.
var ErrNotInCharset = errors.New("character is not in the character set")

var reverses sync.Map // name → map[rune]uint32

// Encode returns UTF-8 text in a character set. Where several codes are one
// character the least is taken.
func Encode(charset string, text []byte) ([]byte, error) {
	if UTF8(charset) {
		return append([]byte{}, text...), nil
	}
	out := []byte{}
	be, le := binary.BigEndian, binary.LittleEndian
	for rest := text; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 {
			return nil, fmt.Errorf("%w: %q is not UTF-8", ErrNotInCharset, rest[:1])
		}
		rest = rest[n:]
		switch charset {
		case "ucs2", "utf16", "utf16le":
			units := []uint16{uint16(r)}
			if r > 0xFFFF {
				if charset == "ucs2" {
					return nil, fmt.Errorf("%w: %q in ucs2", ErrNotInCharset, r)
				}
				units = []uint16{uint16(0xD800 + (r-0x10000)>>10), uint16(0xDC00 + (r-0x10000)&0x3FF)}
			}
			for _, u := range units {
				if charset == "utf16le" {
					out = le.AppendUint16(out, u)
				} else {
					out = be.AppendUint16(out, u)
				}
			}
		case "utf32":
			out = be.AppendUint32(out, uint32(r))
		default:
			m := reverse(charset)
			if m == nil {
				return nil, fmt.Errorf("character set %s is not known", charset)
			}
			code, ok := m[r]
			switch {
			case !ok && charset == "gb18030":
				four, err := simplifiedchinese.GB18030.NewEncoder().Bytes(utf8.AppendRune(nil, r))
				if err != nil {
					return nil, fmt.Errorf("%w: %q in gb18030", ErrNotInCharset, r)
				}
				out = append(out, four...)
			case !ok:
				return nil, fmt.Errorf("%w: %q in %s", ErrNotInCharset, r, charset)
			case code > 0xFFFF:
				out = append(out, byte(code>>16), byte(code>>8), byte(code))
			case code > 0xFF:
				out = append(out, byte(code>>8), byte(code))
			default:
				out = append(out, byte(code))
			}
		}
	}
	return out, nil
}

func reverse(charset string) map[rune]uint32 {
	if m, ok := reverses.Load(charset); ok {
		return m.(map[rune]uint32)
	}
	m := map[rune]uint32{}
	put := func(r rune, code uint32) {
		if _, ok := m[r]; !ok && r >= 0 {
			m[r] = code
		}
	}
	if t := singles()[charset]; t != nil {
		for i, r := range t {
			put(r, uint32(i))
		}
	} else if multi(charset) != nil {
		d, _ := multis.Load(charset)
		t := d.(*double)
		for i, r := range t.one {
			put(r, uint32(i))
		}
		for i := 0x8100; i < len(t.two); i++ {
			if lead := t.one[i>>8]; lead == leadTwo || lead == leadFour {
				put(t.two[i], uint32(i))
			}
		}
		for i := 0xA1A1; i < len(t.three) && t.one[0x8F] == leadThree; i++ {
			put(t.three[i], 0x8F0000|uint32(i))
		}
	} else {
		return nil
	}
	reverses.Store(charset, m)
	return m
}
