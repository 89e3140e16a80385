package jsonb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestDouble(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{
		{0, "0.0"},
		{math.Copysign(0, -1), "-0.0"},
		{1, "1.0"},
		{-1.5, "-1.5"},
		{0.1, "0.1"},
		{100, "100.0"},
		{1e14, "100000000000000.0"},
		{123456789012345, "123456789012345.0"},
		{1e15, "1e15"},
		{1.5e20, "1.5e20"},
		{1e308, "1e308"},
		{-1.7976931348623157e308, "-1.7976931348623157e308"},
		{1e-14, "0.00000000000001"},
		{2.2250738585072014e-308, "2.2250738585072014e-308"},
		{1.5e-16, "1.5e-16"},
	} {
		if got := string(AppendDouble(nil, c.f)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.f, got, c.want)
		}
	}
}

// object builds a small object of keys (in order) with inline 16-bit values.
func object(keys []string, vals []int16) []byte {
	n := len(keys)
	head := 4 + n*4 + n*3
	b := make([]byte, head)
	binary.LittleEndian.PutUint16(b, uint16(n))
	for i, k := range keys {
		binary.LittleEndian.PutUint16(b[4+4*i:], uint16(len(b)))
		binary.LittleEndian.PutUint16(b[6+4*i:], uint16(len(k)))
		b = append(b, k...)
	}
	for i, v := range vals {
		at := 4 + 4*n + 3*i
		b[at] = int16Value
		binary.LittleEndian.PutUint16(b[at+1:], uint16(v))
	}
	binary.LittleEndian.PutUint16(b[2:], uint16(len(b)))
	return append([]byte{smallObject}, b...)
}

func TestText(t *testing.T) {
	str := func(s string) []byte { return append([]byte{stringValue, byte(len(s))}, s...) }
	u64 := func(kind byte, v uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{kind}, v) }
	for _, c := range []struct {
		name string
		doc  []byte
		want string
	}{
		{"nothing", nil, "null"},
		{"true", []byte{literal, 1}, "true"},
		{"unsigned", u64(uint64Value, math.MaxUint64), "18446744073709551615"},
		{"signed", u64(int64Value, 1<<63), "-9223372036854775808"},
		{"unsigned 32", []byte{uint32Value, 0, 0, 0, 0x80}, "2147483648"},
		{"string", str("a\"\\\b\f\n\r\t\x01\x7f男"), "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f男\""},
		{"object", object([]string{"", "b", "aa"}, []int16{1, -2, 3}), `{"": 1, "b": -2, "aa": 3}`},
		{"opaque", []byte{opaqueValue, 252, 2, 0xFF, 0xFE}, `"base64:type252://4="`},
		{"decimal", []byte{opaqueValue, 246, 4, 4, 2, 0x81, 0x0A}, "1.10"},
		{"date", append([]byte{opaqueValue, 10, 8}, binary.LittleEndian.AppendUint64(nil, uint64(2024*13+2)<<46|29<<41)...), `"2024-02-29"`},
		{"time", append([]byte{opaqueValue, 11, 8}, binary.LittleEndian.AppendUint64(nil, ^uint64(0))...), `"-00:00:00.000001"`},
	} {
		got, err := AppendText(nil, c.doc)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s %v, want %s", c.name, got, err, c.want)
		}
	}
}

func TestDepth(t *testing.T) {
	doc := []byte{literal, 0}
	nest := func(n int) []byte {
		d := doc
		for range n {
			b := []byte{1, 0, 0, 0, d[0], 7, 0}
			if d[0] == literal {
				b[5], b[6] = d[1], 0
			} else {
				b = append(b, d[1:]...)
			}
			binary.LittleEndian.PutUint16(b[2:], uint16(len(b)))
			d = append([]byte{smallArray}, b...)
		}
		return d
	}
	if _, err := AppendText(nil, nest(100)); err != nil {
		t.Error(err)
	}
	if _, err := AppendText(nil, nest(101)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("101 levels: %v", err)
	}
}

func TestApply(t *testing.T) {
	doc := object([]string{"a", "b"}, []int16{1, 2})
	diff := func(op byte, path string, val ...byte) []byte {
		b := append([]byte{op, byte(len(path))}, path...)
		if op != opRemove {
			b = append(append(b, byte(len(val))), val...)
		}
		return b
	}
	seven := []byte{int16Value, 7, 0}
	var ed Editor
	for _, c := range []struct {
		diffs []byte
		want  string
	}{
		{nil, `{"a": 1, "b": 2}`},
		{diff(opReplace, "$.a", seven...), `{"a": 7, "b": 2}`},
		{diff(opRemove, `$."b"`), `{"a": 1}`},
		{diff(opInsert, "$.aa", seven...), `{"a": 1, "b": 2, "aa": 7}`},
		{diff(opInsert, `$."\u00e9\"x"`, seven...), `{"a": 1, "b": 2, "é\"x": 7}`},
		{bytes.Join([][]byte{diff(opReplace, "$.a", object([]string{"x"}, []int16{5})...), diff(opReplace, "$.a.x", seven...)}, nil), `{"a": {"x": 7}, "b": 2}`},
		{diff(opReplace, "$", seven...), "7"},
	} {
		got, err := ed.Apply(doc, c.diffs)
		if err != nil || string(got) != c.want {
			t.Errorf("% x: got %s %v, want %s", c.diffs, got, err, c.want)
		}
	}
	for _, bad := range [][]byte{diff(opReplace, "$.c", seven...), diff(opRemove, "$[0]"), diff(3, "$.a"), {0, 200}, diff(opRemove, "$"), diff(opReplace, "x", seven...)} {
		if got, err := ed.Apply(doc, bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("% x: got %s %v, want an error", bad, got, err)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add(object([]string{"a", "bb"}, []int16{1, 2}), []byte{0, 3, '$', '.', 'a', 2, 4, 1})
	f.Add([]byte{opaqueValue, 246, 4, 4, 2, 0x81, 0x0A}, []byte{2, 3, '$', '.', 'a'})
	f.Add([]byte{largeArray, 1, 0, 0, 0, 13, 0, 0, 0, 7, 1, 0, 0, 0}, []byte{})
	f.Fuzz(func(t *testing.T, doc, diffs []byte) {
		if len(doc) > 4096 {
			return
		}
		text, err := AppendText(nil, doc)
		if err == nil && strings.ContainsAny(string(text), "\n\t") {
			t.Errorf("control character in %q", text)
		}
		var ed Editor
		_, _ = ed.Apply(doc, diffs)
	})
}
