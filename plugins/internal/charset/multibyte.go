package charset

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// multibyte.txt has one rule a line: a character set, the first and last code
// (hexadecimal) of a run, and the code point of the first, the others following
// it, or "-" where the server knows no such character.
//
//go:embed multibyte.txt
var multiList string

// double is a character set of up to two bytes, and three after the lead 0x8F.
type double struct {
	one   [256]rune // -1 = not a character, -2 = lead of two bytes, -3 = of three, -4 = of two or four
	two   [1 << 16]rune
	three [1 << 16]rune
}

const (
	invalid = -1 - iota
	leadTwo
	leadThree
	leadFour
)

var multis sync.Map // name → *double

func multi(name string) Decode {
	if d, ok := multis.Load(name); ok {
		return d.(*double).decode
	}
	var e encoding.Encoding
	switch name {
	case "gbk", "gb2312":
		e = simplifiedchinese.GBK
	case "gb18030":
		e = simplifiedchinese.GB18030
	case "big5":
		e = traditionalchinese.Big5
	case "sjis", "cp932":
		e = japanese.ShiftJIS
	case "ujis", "eucjpms":
		e = japanese.EUCJP
	case "euckr":
		e = korean.EUCKR
	default:
		return nil
	}
	d := build(name, e)
	multis.Store(name, d)
	return d.decode
}

func build(name string, e encoding.Encoding) *double {
	d := new(double)
	dec := e.NewDecoder()
	rune1 := func(b ...byte) rune {
		out, err := dec.Bytes(b)
		r, n := utf8.DecodeRune(out)
		if err != nil || n != len(out) || r == utf8.RuneError {
			return invalid
		}
		return r
	}
	kana := name == "sjis" || name == "cp932"
	for i := range 256 {
		b := byte(i)
		switch {
		case i < 0x80:
			d.one[i] = rune(i)
		case kana && i >= 0xA1 && i <= 0xDF:
			d.one[i] = rune1(b)
		case i == 0x80 || i == 0xFF || kana && i == 0xA0:
			d.one[i] = invalid
		case i == 0x8F && (name == "ujis" || name == "eucjpms"):
			d.one[i] = leadThree
		case name == "gb18030":
			d.one[i] = leadFour
		default:
			d.one[i] = leadTwo
		}
	}
	for i := 0x8100; i < 1<<16; i++ {
		d.two[i] = rune1(byte(i>>8), byte(i))
	}
	if d.one[0x8F] == leadThree {
		for i := 0xA1A1; i < 1<<16; i++ {
			d.three[i] = rune1(0x8F, byte(i>>8), byte(i))
		}
	}
	for line := range strings.Lines(multiList) {
		f := strings.Fields(line)
		if f[0] == name {
			d.rule(f[1], f[2], f[3])
		}
	}
	return d
}

func (d *double) rule(from, to, code string) {
	lo, _ := strconv.ParseUint(from, 16, 32)
	hi, _ := strconv.ParseUint(to, 16, 32)
	v, err := strconv.ParseUint(code, 16, 32)
	for c := lo; c <= hi; c++ {
		r := rune(invalid)
		if err == nil {
			r = rune(v + c - lo)
		}
		switch {
		case c < 0x100:
			d.one[c] = r
		case c < 0x10000:
			d.two[c] = r
		default:
			d.three[c&0xFFFF] = r
		}
	}
}

func (d *double) decode(dst, src []byte) ([]byte, bool) {
	for i := 0; i < len(src); i++ {
		r := d.one[src[i]]
		switch {
		case r >= 0 && r < utf8.RuneSelf:
			dst = append(dst, byte(r))
			continue
		case r >= 0:
		case r == leadTwo && i+1 < len(src):
			r = d.two[int(src[i])<<8|int(src[i+1])]
			i++
		case r == leadThree && i+2 < len(src):
			r = d.three[int(src[i+1])<<8|int(src[i+2])]
			i += 2
		case r == leadFour && i+3 < len(src) && src[i+1] >= '0' && src[i+1] <= '9':
			var four [utf8.UTFMax]byte
			n, _, err := simplifiedchinese.GB18030.NewDecoder().Transform(four[:], src[i:i+4], true)
			if r, _ = utf8.DecodeRune(four[:n]); err != nil || r == utf8.RuneError {
				return dst, false
			}
			i += 3
		case r == leadFour && i+1 < len(src):
			r = d.two[int(src[i])<<8|int(src[i+1])]
			i++
		default:
			return dst, false
		}
		if r < 0 {
			return dst, false
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, true
}
