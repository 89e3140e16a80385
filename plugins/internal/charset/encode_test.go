package charset

import (
	"bytes"
	"testing"
)

// TestEncode has each character set give back what it decoded.
func TestEncode(t *testing.T) {
	for _, c := range []struct{ charset, in string }{
		{"latin1", "\x80\xe9"},
		{"latin2", "\xb3"},
		{"koi8r", "\xf0\xd2"},
		{"sjis", "\xb1\x83\x5c"},
		{"gbk", "\xd6\xd0"},
		{"gb18030", "\x94\x39\xda\x33\xa2\xe3"},
		{"big5", "\xa4\xa4\xa5\x5c"},
		{"ujis", "\xa4\xc6\x8e\xb1\x8f\xb0\xa1"},
		{"euckr", "\xc7\xd1"},
		{"ucs2", "\x4e\x2d"},
		{"utf16", "\xd8\x3d\xde\x00"},
		{"utf16le", "\x3d\xd8\x00\xde"},
		{"utf32", "\x00\x01\xf6\x00"},
		{"utf8mb4", "😀"},
	} {
		text, ok := For(c.charset)(nil, []byte(c.in))
		if !ok {
			t.Fatalf("%s % x does not decode", c.charset, c.in)
		}
		got, err := Encode(c.charset, text)
		if err != nil || !bytes.Equal(got, []byte(c.in)) {
			t.Errorf("%s %q: % x %v, want % x", c.charset, text, got, err, c.in)
		}
	}
	if got, err := Encode("latin1", []byte("中")); err == nil {
		t.Errorf("中 in latin1: % x", got)
	}
}
