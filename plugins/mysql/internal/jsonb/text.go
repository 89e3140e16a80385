package jsonb

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/datalink-go/datalink/plugins/mysql/internal/decimal"
)

// AppendText appends the text of a document, as SELECT prints it.
func AppendText(dst, doc []byte) ([]byte, error) {
	v, err := parse(doc)
	if err != nil {
		return dst, err
	}
	return appendValue(dst, v, 0)
}

func appendValue(dst []byte, v value, depth int) ([]byte, error) {
	c, is, err := v.container()
	if err != nil || !is {
		if err != nil {
			return dst, err
		}
		return appendScalar(dst, v)
	}
	if depth++; depth > maxDepth {
		return dst, corrupt("nested deeper than %d", maxDepth)
	}
	open, end := byte('['), byte(']')
	if c.object {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	for i := range c.n {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if c.object {
			k, err := c.key(i)
			if err != nil {
				return dst, err
			}
			if dst, err = appendString(dst, k); err != nil {
				return dst, err
			}
			dst = append(dst, ": "...)
		}
		e, err := c.value(i)
		if err != nil {
			return dst, err
		}
		if dst, err = appendValue(dst, e, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, end), nil
}

func appendScalar(dst []byte, v value) ([]byte, error) {
	switch v.kind {
	case literal:
		if err := v.need(1); err != nil {
			return dst, err
		}
		switch v.data[0] {
		case 0:
			return append(dst, "null"...), nil
		case 1:
			return append(dst, "true"...), nil
		case 2:
			return append(dst, "false"...), nil
		}
		return dst, corrupt("literal %d", v.data[0])
	case int16Value:
		if err := v.need(2); err != nil {
			return dst, err
		}
		return strconv.AppendInt(dst, int64(int16(binary.LittleEndian.Uint16(v.data))), 10), nil
	case uint16Value:
		if err := v.need(2); err != nil {
			return dst, err
		}
		return strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint16(v.data)), 10), nil
	case int32Value:
		if err := v.need(4); err != nil {
			return dst, err
		}
		return strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(v.data))), 10), nil
	case uint32Value:
		if err := v.need(4); err != nil {
			return dst, err
		}
		return strconv.AppendUint(dst, uint64(binary.LittleEndian.Uint32(v.data)), 10), nil
	case int64Value:
		if err := v.need(8); err != nil {
			return dst, err
		}
		return strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(v.data)), 10), nil
	case uint64Value:
		if err := v.need(8); err != nil {
			return dst, err
		}
		return strconv.AppendUint(dst, binary.LittleEndian.Uint64(v.data), 10), nil
	case doubleValue:
		if err := v.need(8); err != nil {
			return dst, err
		}
		return AppendDouble(dst, math.Float64frombits(binary.LittleEndian.Uint64(v.data))), nil
	case stringValue:
		n, k, err := varlen(v.data)
		if err != nil {
			return dst, err
		}
		return appendString(dst, v.data[k:k+n])
	case opaqueValue:
		if err := v.need(1); err != nil {
			return dst, err
		}
		n, k, err := varlen(v.data[1:])
		if err != nil {
			return dst, err
		}
		return appendOpaque(dst, v.data[0], v.data[1+k:1+k+n])
	}
	return dst, corrupt("value of type %#02x", v.kind)
}

// AppendDouble appends a number of type DOUBLE: the shortest digits that read
// back as the same, in exponent form outside of 1e-15 to 1e15, and always so that
// it is seen not to be an integer (dtoa.cc, my_gcvt; json_dom.cc).
func AppendDouble(dst []byte, f float64) []byte {
	var buf [32]byte
	// d.ddde±xx: digits and exponent of the shortest form.
	s := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	neg := s[0] == '-'
	if neg {
		s = s[1:]
		dst = append(dst, '-')
	}
	e := len(s) - 1
	for e > 0 && s[e] != 'e' {
		e--
	}
	if e == 0 { // NaN and infinities cannot be stored; print what is there
		return append(dst, s...)
	}
	exp, _ := strconv.Atoi(string(s[e+1:]))
	var digits [24]byte
	d := append(digits[:0], s[0])
	if e > 2 {
		d = append(d, s[2:e]...)
	}
	point := exp + 1 // digits before the point
	switch {
	case f == 0:
		return append(dst, "0.0"...)
	case point > 15 || point < -14:
		dst = append(dst, d[0])
		if len(d) > 1 {
			dst = append(append(dst, '.'), d[1:]...)
		}
		return strconv.AppendInt(append(dst, 'e'), int64(exp), 10)
	case point <= 0:
		dst = append(dst, "0."...)
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, d...)
	case len(d) <= point:
		dst = append(dst, d...)
		for range point - len(d) {
			dst = append(dst, '0')
		}
		return append(dst, ".0"...)
	default:
		dst = append(append(dst, d[:point]...), '.')
		return append(dst, d[point:]...)
	}
}

// appendString appends a string with its quotes. Strings in a document are
// utf8mb4.
func appendString(dst, s []byte) ([]byte, error) {
	if !utf8.Valid(s) {
		return dst, corrupt("string of %d bytes is not UTF-8", len(s))
	}
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i, b := range s {
		if b >= 0x20 && b != '"' && b != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\b':
			dst = append(dst, `\b`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\r':
			dst = append(dst, `\r`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		}
	}
	return append(append(dst, s[from:]...), '"'), nil
}

// Field types of opaque values that have a text of their own.
const (
	fieldTimestamp  = 7
	fieldDate       = 10
	fieldTime       = 11
	fieldDateTime   = 12
	fieldNewDecimal = 246
)

func appendOpaque(dst []byte, field byte, b []byte) ([]byte, error) {
	switch field {
	case fieldNewDecimal:
		return appendDecimal(dst, b)
	case fieldDate, fieldTime, fieldDateTime, fieldTimestamp:
		if len(b) != 8 {
			return dst, corrupt("time of %d bytes", len(b))
		}
		return appendTime(dst, field, int64(binary.LittleEndian.Uint64(b))), nil
	}
	dst = append(dst, `"base64:type`...)
	dst = strconv.AppendUint(dst, uint64(field), 10)
	dst = base64.StdEncoding.AppendEncode(append(dst, ':'), b)
	return append(dst, '"'), nil
}

// appendDecimal appends a decimal: precision and scale, then the form of rows.
func appendDecimal(dst, b []byte) ([]byte, error) {
	if len(b) < 2 {
		return dst, corrupt("decimal of %d bytes", len(b))
	}
	prec, scale := int(b[0]), int(b[1])
	if prec < 1 || prec > 81 || scale > prec || len(b) != 2+decimal.Size(prec, scale) {
		return dst, corrupt("decimal(%d,%d) of %d bytes", prec, scale, len(b))
	}
	return decimal.Append(dst, b[2:], prec, scale), nil
}

// appendTime appends a packed time of the server with six fractional digits.
func appendTime(dst []byte, field byte, packed int64) []byte {
	dst = append(dst, '"')
	two := func(v int64) {
		dst = append(dst, byte('0'+v/10%10), byte('0'+v%10))
	}
	if field == fieldTime {
		if packed < 0 {
			packed = -packed
			dst = append(dst, '-')
		}
		hms := packed >> 24
		if h := hms >> 12 & 0x3FF; h >= 100 {
			dst = strconv.AppendInt(dst, h, 10)
		} else {
			two(h)
		}
		dst = append(dst, ':')
		two(hms >> 6 & 63)
		dst = append(dst, ':')
		two(hms & 63)
	} else {
		if packed < 0 {
			packed = -packed
		}
		ymd := packed >> 24 >> 17
		ym := ymd >> 5
		two(ym / 13 / 100)
		two(ym / 13 % 100)
		dst = append(dst, '-')
		two(ym % 13)
		dst = append(dst, '-')
		two(ymd & 31)
		if field == fieldDate {
			return append(dst, '"')
		}
		hms := packed >> 24 & 0x1FFFF
		dst = append(dst, ' ')
		two(hms >> 12)
		dst = append(dst, ':')
		two(hms >> 6 & 63)
		dst = append(dst, ':')
		two(hms & 63)
	}
	us := packed & 0xFFFFFF
	dst = append(dst, '.')
	for div := int64(100000); div > 0; div /= 10 {
		dst = append(dst, byte('0'+us/div%10))
	}
	return append(dst, '"')
}
