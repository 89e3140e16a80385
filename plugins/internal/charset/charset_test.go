package charset

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct{ charset, in, want string }{
		{"latin1", "\x80\xe9\x81", "€é\u0081"}, // the server's latin1 is cp1252 and has all bytes
		{"latin2", "\xb3", "ł"},
		{"koi8r", "\xf0\xd2", "Пр"},
		{"swe7", "[", "Ä"},
		{"sjis", "\x81\x5f\xb1\x83\x5c", "\\ｱソ"}, // 815F is a backslash to the server
		{"cp932", "\x81\x5f\xf0\x40", "＼\ue000"},
		{"gbk", "\x81\x5c\xd6\xd0", "乗中"},
		{"gb2312", "\xa1\xa4\xd6\xd0", "・中"},
		{"gb18030", "\x94\x39\xda\x33\xa2\xe3", "💩€"},
		{"big5", "\xa4\xa4\xa5\x5c", "中功"},
		{"ujis", "\xa4\xc6\x8e\xb1\x8f\xb0\xa1", "てｱ丂"},
		{"eucjpms", "\xa4\xc6", "て"},
		{"euckr", "\xc7\xd1", "한"},
		{"ucs2", "\x4e\x2d", "中"},
		{"utf16", "\xd8\x3d\xde\x00", "😀"},
		{"utf16le", "\x3d\xd8\x00\xde", "😀"},
		{"utf32", "\x00\x01\xf6\x00", "😀"},
		{"utf8mb4", "😀", "😀"},
	} {
		got, ok := For(c.charset)(nil, []byte(c.in))
		if !ok || string(got) != c.want {
			t.Errorf("%s % x: got %q %t, want %q", c.charset, c.in, got, ok, c.want)
		}
	}
}

func TestInvalid(t *testing.T) {
	for _, c := range []struct{ charset, in string }{
		{"utf8mb4", "\xff"},
		{"ascii", "\x80"},
		{"gbk", "\xa2\xe3"},
		{"gbk", "\x81"},
		{"sjis", "\x81"},
		{"big5", "\x80\x40"},
		{"ucs2", "\xd8\x3d"},
		{"ucs2", "\x00"},
		{"utf16", "\xd8\x3d\x00\x41"},
		{"utf16", "\xd8\x3d"},
		{"utf32", "\x00\x11\x00\x00"},
		{"utf32", "\x00\x00\xd8\x00"},
		{"tis620", "\xfc"},
		{"ujis", "\x8f\xa1"},
		{"gb18030", "\x94\x39\xda"},
		{"hebrew", "\xff"},
	} {
		if got, ok := For(c.charset)(nil, []byte(c.in)); ok {
			t.Errorf("%s % x: got %q, want invalid", c.charset, c.in, got)
		}
	}
}

// TestEveryCharset sees that each character set of the servers has a decoder, and
// that each collation is of a known one.
func TestEveryCharset(t *testing.T) {
	for name := range maxLen {
		if name != "binary" && For(name) == nil {
			t.Errorf("no decoder for %s", name)
		}
		if _, ok := ByName(Default(name, false)); !ok {
			t.Errorf("%s: default collation %s is not known", name, Default(name, false))
		}
	}
	n := 0
	for _, c := range collations().byID {
		n++
		if _, ok := maxLen[c.Charset]; !ok {
			t.Errorf("collation %s is of character set %s, which is not known", c.Name, c.Charset)
		}
		if c.Charset != "binary" && !strings.HasPrefix(c.Name, c.Charset) {
			t.Errorf("collation %s of %s", c.Name, c.Charset)
		}
	}
	if n < 1300 {
		t.Errorf("%d collations", n)
	}
	for _, c := range []struct {
		id   uint32
		name string
	}{{8, "latin1_swedish_ci"}, {33, "utf8mb3_general_ci"}, {255, "utf8mb4_0900_ai_ci"}, {2304, "utf8mb4_uca1400_ai_ci"}} {
		if got, _ := ByID(c.id); got.Name != c.name {
			t.Errorf("collation %d: %s, want %s", c.id, got.Name, c.name)
		}
	}
	if c, ok := ByName("utf8_unicode_ci"); !ok || c.Charset != "utf8mb3" {
		t.Errorf("utf8_unicode_ci: %v", c)
	}
}

func FuzzDecode(f *testing.F) {
	for name := range maxLen {
		f.Add(name, []byte("a\x81\x5c\xff\xd8\x3d\x94\x39\xda\x33"))
	}
	f.Fuzz(func(t *testing.T, name string, in []byte) {
		if dec := For(name); dec != nil {
			out, ok := dec(nil, in)
			if ok && len(out) > 4*len(in) {
				t.Errorf("%s: %d bytes from %d", name, len(out), len(in))
			}
		}
	})
}
