package rowkey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/datalink-go/datalink/sdk/batch"
)

// errShort says that a key ends within a part.
var errShort = errors.New("row key is cut off or not of this template")

// width is how many bytes the ordered form of a type has; 0 = as many as it needs,
// -1 = there is no such form.
func width(t batch.Type) int {
	switch t {
	case batch.Bool, batch.Int8, batch.Uint8:
		return 1
	case batch.Int16, batch.Uint16, batch.Year:
		return 2
	case batch.Int32, batch.Uint32, batch.Float32, batch.Date:
		return 4
	case batch.Int64, batch.Uint64, batch.Float64, batch.Time, batch.DateTime, batch.Timestamp:
		return 8
	case batch.UUID:
		return 16
	case batch.Decimal, batch.String, batch.Bytes, batch.Bit, batch.Enum, batch.Set, batch.Inet, batch.JSON:
		return 0
	}
	return -1
}

// appendOrdered appends the ordered form. Last says that nothing follows, so that
// text need not end itself.
func appendOrdered(dst []byte, t batch.Type, v *batch.Value, last bool) []byte {
	switch t {
	case batch.Bool, batch.Uint8:
		return append(dst, byte(v.Uint64()))
	case batch.Int8:
		return append(dst, byte(v.Int64())^0x80)
	case batch.Uint16, batch.Year:
		return binary.BigEndian.AppendUint16(dst, uint16(v.Uint64()))
	case batch.Int16:
		return binary.BigEndian.AppendUint16(dst, uint16(v.Int64())^0x8000)
	case batch.Uint32:
		return binary.BigEndian.AppendUint32(dst, uint32(v.Uint64()))
	case batch.Int32, batch.Date:
		return binary.BigEndian.AppendUint32(dst, uint32(v.Int64())^0x80000000)
	case batch.Uint64:
		return binary.BigEndian.AppendUint64(dst, v.Uint64())
	case batch.Int64, batch.Time, batch.DateTime, batch.Timestamp:
		return binary.BigEndian.AppendUint64(dst, uint64(v.Int64())^1<<63)
	case batch.Float32:
		b := math.Float32bits(float32(v.Float64()))
		return binary.BigEndian.AppendUint32(dst, b^(uint32(int32(b)>>31)|1<<31))
	case batch.Float64:
		b := math.Float64bits(v.Float64())
		return binary.BigEndian.AppendUint64(dst, b^(uint64(int64(b)>>63)|1<<63))
	case batch.UUID:
		return append(dst, v.Bytes()...)
	case batch.Decimal:
		return appendDecimal(dst, v.Bytes())
	}
	if last {
		return append(dst, v.Bytes()...)
	}
	return appendEscaped(dst, v.Bytes())
}

// appendEscaped writes 0x00 as 0x00 0xFF and ends with 0x00 0x01.
func appendEscaped(dst, p []byte) []byte {
	for {
		i := bytes.IndexByte(p, 0)
		if i < 0 {
			return append(append(dst, p...), 0, 1)
		}
		dst = append(append(dst, p[:i]...), 0, 0xff)
		p = p[i+1:]
	}
}

func cutEscaped(p []byte) (text, rest []byte, err error) {
	for {
		i := bytes.IndexByte(p, 0)
		if i < 0 || i+1 >= len(p) {
			return nil, nil, errShort
		}
		text = append(text, p[:i]...)
		switch p[i+1] {
		case 1:
			return text, p[i+2:], nil
		case 0xff:
			text = append(text, 0)
		default:
			return nil, nil, errShort
		}
		p = p[i+2:]
	}
}

// appendDecimal writes the sign (1 negative, 2 zero, 3 positive), the exponent of
// the first digit as a biased 32-bit number, the digits as '0' to '9' and a zero
// byte; for negative numbers everything behind the sign is inverted. Trailing
// zeros after the point do not count: 1.0 and 1.00 are one key.
func appendDecimal(dst, text []byte) []byte {
	switch string(text) {
	case "NaN":
		return append(dst, 6)
	case "Infinity":
		return append(dst, 5)
	case "-Infinity":
		return append(dst, 0)
	}
	s, neg := strings.CutPrefix(string(text), "-")
	whole, frac, _ := strings.Cut(s, ".")
	digits := strings.TrimLeft(whole+frac, "0")
	exp := len(whole) - (len(whole) + len(frac) - len(digits))
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return append(dst, 2)
	}
	from := len(dst) + 1
	if neg {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 3)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(int32(exp))^0x80000000)
	dst = append(append(dst, digits...), 0)
	if neg {
		for i := from; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

// cutDecimal returns the number with as many digits after the point as scale says.
func cutDecimal(p []byte, scale int) (text string, rest []byte, err error) {
	if len(p) == 0 {
		return "", nil, errShort
	}
	sign, p := p[0], p[1:]
	zeros := func(s string, n int) string {
		if n > 0 {
			s += "." + strings.Repeat("0", n)
		}
		return s
	}
	switch sign {
	case 0:
		return "-Infinity", p, nil
	case 5:
		return "Infinity", p, nil
	case 6:
		return "NaN", p, nil
	case 2:
		return zeros("0", scale), p, nil
	case 1, 3:
	default:
		return "", nil, errShort
	}
	var mask byte
	if sign == 1 {
		mask = 0xff
	}
	end := bytes.IndexByte(p[min(4, len(p)):], mask)
	if len(p) < 4 || end <= 0 {
		return "", nil, errShort
	}
	var e [4]byte
	for i := range e {
		e[i] = p[i] ^ mask
	}
	exp := int(int32(binary.BigEndian.Uint32(e[:]) ^ 0x80000000))
	digits := bytes.Clone(p[4 : 4+end])
	for i := range digits {
		if digits[i] ^= mask; digits[i] < '0' || digits[i] > '9' {
			return "", nil, errShort
		}
	}
	if exp > 1<<17 || exp < -(1<<17) {
		return "", nil, fmt.Errorf("%w: exponent %d", errShort, exp)
	}
	d := string(digits)
	if exp <= 0 {
		d, exp = strings.Repeat("0", 1-exp)+d, 1
	}
	if n := exp - len(d); n > 0 {
		d += strings.Repeat("0", n)
	}
	whole, frac := d[:exp], d[exp:]
	if n := scale - len(frac); n > 0 {
		frac += strings.Repeat("0", n)
	}
	if frac != "" {
		whole += "." + frac
	}
	if sign == 1 {
		whole = "-" + whole
	}
	return whole, p[4+end+1:], nil
}
