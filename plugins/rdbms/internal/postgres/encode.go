package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/datalink-go/datalink/sdk/batch"
)

// encode appends a value that is present in the binary form of its wire. Where the
// target cannot hold it the misfit says why, and what it could hold instead.
type encode func(dst []byte, c *batch.Column, i *info, v *batch.Value) ([]byte, *misfit)

// misfit is a value that the target cannot hold.
type misfit struct {
	why string
	cut []byte // the nearest value, encoded; nil = there is none
}

func misfitf(cut []byte, format string, args ...any) *misfit {
	return &misfit{why: fmt.Sprintf(format, args...), cut: cut}
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// integer returns the value of an integer or bit column as sign and magnitude.
func integer(c *batch.Column, v *batch.Value) (neg bool, u uint64) {
	switch c.Type {
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		if n := v.Int64(); n < 0 {
			return true, -uint64(n)
		}
		return false, uint64(v.Int64())
	case batch.Bit:
		for _, b := range v.Bytes() {
			u = u<<8 | uint64(b)
		}
		return false, u
	}
	return false, v.Uint64()
}

func encodeBool(dst []byte, c *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	neg, u := integer(c, v)
	if neg || u > 1 {
		return dst, misfitf([]byte{1}, "a boolean cannot hold the number %d", v.Int64())
	}
	return append(dst, byte(u)), nil
}

func appendInt(dst []byte, oid uint32, n int64) []byte {
	switch oid {
	case oidInt2:
		return binary.BigEndian.AppendUint16(dst, uint16(n))
	case oidInt4:
		return binary.BigEndian.AppendUint32(dst, uint32(n))
	}
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

func encodeInt(dst []byte, c *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	neg, u := integer(c, v)
	lo, hi, _ := intRange(i.oid)
	switch {
	case neg && u > uint64(hi)+1:
		return dst, misfitf(appendInt(nil, i.oid, lo), "its type cannot hold -%d", u)
	case neg:
		return appendInt(dst, i.oid, -int64(u)), nil
	case u > uint64(hi):
		return dst, misfitf(appendInt(nil, i.oid, hi), "its type cannot hold %d", u)
	}
	return appendInt(dst, i.oid, int64(u)), nil
}

func encodeDecimalInt(dst []byte, _ *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	n, err := strconv.ParseInt(string(v.Bytes()), 10, 64)
	lo, hi, _ := intRange(i.oid)
	switch {
	case err == nil && n >= lo && n <= hi:
		return appendInt(dst, i.oid, n), nil
	case len(v.Bytes()) > 0 && v.Bytes()[0] == '-':
		return dst, misfitf(appendInt(nil, i.oid, lo), "its type cannot hold %s", v.Bytes())
	}
	return dst, misfitf(appendInt(nil, i.oid, hi), "its type cannot hold %s", v.Bytes())
}

func encodeNumber(dst []byte, c *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	var buf [24]byte
	neg, u := integer(c, v)
	t := buf[:0]
	if neg {
		t = append(t, '-')
	}
	return numericText(dst, i, strconv.AppendUint(t, u, 10))
}

func encodeIntAsFloat(dst []byte, c *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	neg, u := integer(c, v)
	f := float64(u)
	if neg {
		f = -f
	}
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(f)), nil
}

func encodeFloat8(dst []byte, _ *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v.Float64())), nil
}

func encodeFloat4(dst []byte, _ *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	f := v.Float64()
	g := binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(f)))
	if float64(float32(f)) != f && !math.IsNaN(f) {
		return dst, misfitf(g[len(dst):], "a real rounds %v to %v", f, float32(f))
	}
	return g, nil
}

func encodeBytes(dst []byte, _ *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	return append(dst, v.Bytes()...), nil
}

// encodeBit shifts the bits to the left of their bytes, where PostgreSQL has them.
func encodeBit(dst []byte, c *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	b, n := v.Bytes(), int(c.Length)
	if n == 0 {
		n = 8 * len(b)
	}
	limit := i.limit()
	if i.oid == oidBit && limit < 0 {
		limit = 1
	}
	if limit >= 0 && (i.oid == oidBit && n != limit || n > limit) {
		return dst, misfitf(nil, "its type cannot hold %d bits", n)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	shift := uint(8*len(b) - n)
	for k := range b {
		x := b[k] << shift
		if k+1 < len(b) {
			x |= byte(uint16(b[k+1]) >> (8 - shift))
		}
		dst = append(dst, x)
	}
	return dst, nil
}

// text returns the exact text of a value.
func text(c *batch.Column, v *batch.Value) []byte {
	switch c.Type {
	case batch.String, batch.JSON, batch.Enum, batch.Set, batch.Inet, batch.Decimal, batch.Native:
		return v.Bytes()
	case batch.Bit:
		out := make([]byte, 0, 64)
		for k := range int(c.Length) {
			at := 8*len(v.Bytes()) - int(c.Length) + k
			out = append(out, '0'+v.Bytes()[at/8]>>(7-at%8)&1)
		}
		return out
	case batch.Interval:
		return intervalText(v.Bytes())
	case batch.TimeTZ:
		return timeTZText(c, v.Bytes())
	case batch.Array:
		out, _ := encodeArray(nil, c, nil, v)
		return out
	case batch.Vector:
		return appendFloats(nil, v.Bytes(), '[', ']')
	case batch.Float32, batch.Float64:
		switch f := v.Float64(); {
		case math.IsInf(f, 1):
			return []byte("Infinity")
		case math.IsInf(f, -1):
			return []byte("-Infinity")
		}
	case batch.Time, batch.DateTime, batch.Timestamp:
		d := *c
		if mic := fraction(c, v); mic%pow10[6-min(int(c.Scale), 6)] != 0 {
			d.Scale = 6
		}
		out, _ := batch.AppendText(nil, &d, v)
		return out
	}
	out, _ := batch.AppendText(nil, c, v)
	return out
}

// encodeText writes text within the limit of the column. U+0000 is no character of
// PostgreSQL's text.
func encodeText(dst []byte, c *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	return fitText(dst, i, text(c, v))
}

func fitText(dst []byte, i *info, t []byte) ([]byte, *misfit) {
	if at := bytes.IndexByte(t, 0); at >= 0 {
		cut, _ := fitText([]byte{}, i, bytes.ReplaceAll(t, []byte{0}, nil))
		return dst, misfitf(cut, "PostgreSQL's text has no U+0000, found at byte %d", at)
	}
	if n := i.limit(); n >= 0 && i.holdsText() && len(t) > n && utf8.RuneCount(t) > n {
		at := 0
		for range n {
			_, k := utf8.DecodeRune(t[at:])
			at += k
		}
		return dst, misfitf(append([]byte{}, t[:at]...), "its type holds %d characters, found %d", n, utf8.RuneCount(t))
	}
	return append(dst, t...), nil
}

// encodeJSONB refuses documents of which jsonb would keep a part: it has each name
// once, and no U+0000.
func encodeJSONB(dst []byte, c *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	t := text(c, v)
	if name, ok := duplicateName(t); ok {
		return dst, misfitf(append([]byte{1}, t...), "jsonb keeps one of the two values of the name %q", name)
	}
	if bytes.Contains(t, []byte(`\u0000`)) {
		return dst, misfitf(nil, "jsonb holds no U+0000")
	}
	return append(append(dst, 1), t...), nil
}

// raw encodes bytes that are no value of the source's type: they go where bytes go
// and, as text, where they are that.
func raw(dst []byte, i *info, w *wire, name string, data []byte) ([]byte, *misfit) {
	switch {
	case i.oid == oidBytea:
		return append(dst, data...), nil
	case w.elem == oidText || w.elem == oidBpchar:
		if utf8.Valid(data) {
			return fitText(dst, i, data)
		}
		cut, _ := fitText([]byte{}, i, bytes.ToValidUTF8(bytes.ReplaceAll(data, []byte{0}, nil), []byte("\uFFFD")))
		return dst, misfitf(cut, "the bytes are not valid in %s, and the column is text", name)
	case i.oid == oidDate && name == "date" || i.oid == oidTimestamp && strings.HasPrefix(name, "timestamp") && !strings.HasSuffix(name, "with time zone") ||
		i.oid == oidTimestampTZ && strings.HasPrefix(name, "timestamp") && strings.HasSuffix(name, "with time zone"):
		// A year that the batch has no room for, as PostgreSQL prints it.
		if out, ok := farMoment(dst, i.oid, string(data)); ok {
			return out, nil
		}
	}
	return dst, misfitf(nil, "%q is outside of the type of the column (%s)", data, name)
}
