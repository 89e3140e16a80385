package sqlite

import (
	"database/sql/driver"
	"encoding/binary"
	"math"
	"strconv"
	"unsafe"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// encoder turns values of a batch into what the driver binds. It keeps the text
// it makes in one buffer: the values are good until the next reset.
type encoder struct{ buf []byte }

func (e *encoder) reset() { e.buf = e.buf[:0] }

// view makes a string of bytes without a copy. The driver copies what it binds.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// text returns what was appended to the buffer since at.
func (e *encoder) text(at int) string { return view(e.buf[at:]) }

// value returns v, which has a value or is NULL, as it is stored.
func (e *encoder) value(c *batch.Column, v *batch.Value) (driver.Value, error) {
	if v.State == batch.Null {
		return nil, nil
	}
	if v.State == batch.Raw {
		_, data, _ := v.Raw()
		return blob(data), nil
	}
	at := len(e.buf)
	switch c.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		return v.Int64(), nil
	case batch.Uint8, batch.Uint16, batch.Uint32:
		return int64(v.Uint64()), nil
	case batch.Uint64:
		return e.number(v.Uint64()), nil
	case batch.Bit:
		if classOf(c) == asBlob {
			return blob(v.Bytes()), nil
		}
		var n uint64
		for _, b := range v.Bytes() {
			n = n<<8 | uint64(b)
		}
		return e.number(n), nil
	case batch.Float32, batch.Float64:
		if f := v.Float64(); !math.IsNaN(f) {
			return f, nil
		}
		return "NaN", nil
	case batch.String, batch.Decimal, batch.JSON, batch.Enum, batch.Set, batch.Inet:
		return view(v.Bytes()), nil
	case batch.Bytes, batch.Geometry, batch.Array, batch.Vector:
		return blob(v.Bytes()), nil
	case batch.Map, batch.Native:
		if classOf(c) == asText {
			return view(v.Bytes()), nil
		}
		return blob(v.Bytes()), nil
	case batch.Year:
		e.buf = appendYear(e.buf, int(v.Uint64()))
	case batch.Date:
		e.buf = batch.AppendDate(e.buf, int32(v.Int64()))
	case batch.Time:
		e.buf = batch.AppendTime(e.buf, v.Int64(), scaleOf(c, v.Int64()%1e6))
	case batch.DateTime:
		e.buf = batch.AppendDateTime(e.buf, v.Int64(), scaleOf(c, int64(batch.UnpackDateTime(v.Int64()).Mic)))
	case batch.Timestamp:
		mic := v.Int64() % 1e6
		if v.Int64() == batch.ZeroTimestamp {
			mic = 0
		}
		e.buf = batch.AppendTimestamp(e.buf, v.Int64(), scaleOf(c, mic))
	case batch.UUID:
		e.buf = appendUUID(e.buf, v.Bytes())
	case batch.Interval:
		e.buf = appendInterval(e.buf, v.Bytes())
	case batch.TimeTZ:
		e.buf = appendTimeTZ(e.buf, c, v.Bytes())
	default:
		return nil, sdk.Faultf(sdk.CodeUnfit, "column %s: no mapping for type %s", c.Name, c.Type)
	}
	return e.text(at), nil
}

func (e *encoder) number(n uint64) driver.Value {
	if n <= math.MaxInt64 {
		return int64(n)
	}
	at := len(e.buf)
	e.buf = strconv.AppendUint(e.buf, n, 10)
	return e.text(at)
}

// blob keeps empty values apart from NULL, for which the driver takes nil.
func blob(b []byte) driver.Value {
	if b == nil {
		return []byte{}
	}
	return b
}

// scaleOf is the count of fractional digits to print: those of the column, or
// all six where the value has more than the column states.
func scaleOf(c *batch.Column, mic int64) int {
	scale := min(int(c.Scale), 6)
	if mic%[...]int64{1e6, 1e5, 1e4, 1e3, 100, 10, 1}[scale] != 0 {
		return 6
	}
	return scale
}

func appendYear(dst []byte, y int) []byte {
	for limit := 1000; limit > 1 && y < limit; limit /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(y), 10)
}

func appendUUID(dst, u []byte) []byte {
	const digits = "0123456789abcdef"
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[b>>4], digits[b&15])
	}
	return dst
}

// appendInterval prints the three parts of an interval, each with its own sign,
// as PostgreSQL does: "14 mons -3 days 04:05:06.000007".
func appendInterval(dst, b []byte) []byte {
	dst = strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(b))), 10)
	dst = append(dst, " mons "...)
	dst = strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(b[4:]))), 10)
	dst = append(dst, " days "...)
	return batch.AppendTime(dst, int64(binary.LittleEndian.Uint64(b[8:])), 6)
}

// appendTimeTZ prints a time of day with its offset: "04:05:06+01:30".
func appendTimeTZ(dst []byte, c *batch.Column, b []byte) []byte {
	us := int64(binary.LittleEndian.Uint64(b))
	dst = batch.AppendTime(dst, us, scaleOf(c, us%1e6))
	off := int64(int32(binary.LittleEndian.Uint32(b[8:])))
	sign := byte('+')
	if off < 0 {
		sign, off = '-', -off
	}
	dst = append(dst, sign, byte('0'+off/36000), byte('0'+off/3600%10), ':', byte('0'+off/600%6), byte('0'+off/60%10))
	if s := off % 60; s != 0 {
		dst = append(dst, ':', byte('0'+s/10), byte('0'+s%10))
	}
	return dst
}
