package pgtypes

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/datalink-go/datalink/sdk/batch"
)

func itoa(n int) string { return strconv.Itoa(n) }

// view lets the standard parsers read bytes without a copy; nothing keeps it.
func view(p []byte) string { return unsafe.String(unsafe.SliceData(p), len(p)) }

// Put appends the value with that text as the next column of the open image. An
// error says that the text is none of the type.
func (c *Column) Put(out *batch.Builder, text []byte) error {
	switch c.kind {
	case kindText:
		if c.check && !utf8.Valid(text) {
			out.PutRaw("SQL_ASCII", text)
			return nil
		}
		out.PutBytes(text)
		return nil
	case kindInt:
		v, ok := parseInt(text)
		if !ok {
			return c.bad(text)
		}
		out.PutInt(v)
		return nil
	case kindUint:
		v, err := strconv.ParseUint(view(text), 10, 32)
		if err != nil {
			return c.bad(text)
		}
		out.PutUint(v)
		return nil
	case kindBool:
		if len(text) != 1 || text[0] != 't' && text[0] != 'f' {
			return c.bad(text)
		}
		out.PutInt(int64(b2i(text[0] == 't')))
		return nil
	case kindFloat:
		v, ok := c.float(text)
		if !ok {
			return c.bad(text)
		}
		out.PutFloat(v)
		return nil
	case kindBytes:
		if len(text) < 2 || text[0] != '\\' || text[1] != 'x' || len(text)&1 != 0 {
			return c.bad(text)
		}
		dst, err := hex.AppendDecode(out.VarStart(), text[2:])
		out.VarEnd(dst)
		if err != nil {
			return c.bad(text)
		}
		return nil
	case kindUUID, kindInterval, kindTimeTZ:
		var buf [16]byte
		p, st := c.wide(buf[:0], text)
		switch st {
		case parsed:
			out.PutBytes(p)
		case beyond:
			out.PutRaw(c.native, text)
		default:
			return c.bad(text)
		}
		return nil
	case kindDate, kindTime, kindTimestamp, kindTimestampTZ:
		v, st := c.moment(text)
		switch st {
		case parsed:
			out.PutInt(v)
		case beyond:
			out.PutRaw(c.native, text)
		default:
			return c.bad(text)
		}
		return nil
	case kindBit:
		if len(text) != c.bits {
			return c.bad(text)
		}
		dst, ok := appendBits(out.VarStart(), text)
		out.VarEnd(dst)
		if !ok {
			return c.bad(text)
		}
		return nil
	case kindArray:
		v, st := c.array(text)
		switch st {
		case parsed:
			out.PutBytes(v)
		case beyond:
			out.PutRaw(c.native, text)
		default:
			return c.bad(text)
		}
		return nil
	}
	return c.bad(text)
}

func (c *Column) bad(text []byte) error {
	const most = 60
	s := string(text[:min(len(text), most)])
	if len(text) > most {
		s += "…"
	}
	return fmt.Errorf("%q is no value of type %s as the server prints it", s, c.native)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func parseInt(p []byte) (int64, bool) {
	neg := len(p) > 0 && p[0] == '-'
	if neg {
		p = p[1:]
	}
	if len(p) == 0 || len(p) > 19 {
		return 0, false
	}
	var v uint64
	for _, d := range p {
		if d -= '0'; d > 9 {
			return 0, false
		}
		v = v*10 + uint64(d)
	}
	if neg {
		return -int64(v), v <= 1<<63
	}
	return int64(v), v < 1<<63
}

func (c *Column) float(text []byte) (float64, bool) {
	bits := 64
	if c.batch.Type == batch.Float32 {
		bits = 32
	}
	v, err := strconv.ParseFloat(view(text), bits)
	return v, err == nil
}

func appendBits(dst, text []byte) ([]byte, bool) {
	n := (len(text) + 7) / 8
	at := len(dst)
	for range n {
		dst = append(dst, 0)
	}
	// Right aligned, as a number is: the last digit is the lowest bit.
	for i, d := range text {
		if d != '0' && d != '1' {
			return dst, false
		}
		p := len(text) - 1 - i
		dst[at+n-1-p/8] |= (d - '0') << (p % 8)
	}
	return dst, true
}

// wide appends values of 16 or 12 bytes.
func (c *Column) wide(dst, text []byte) ([]byte, status) {
	switch c.kind {
	case kindUUID:
		if len(text) != 36 {
			return dst, wrong
		}
		for i := 0; i < 36; {
			if i == 8 || i == 13 || i == 18 || i == 23 {
				i++
				continue
			}
			var b [1]byte
			if _, err := hex.Decode(b[:], text[i:i+2]); err != nil {
				return dst, wrong
			}
			dst = append(dst, b[0])
			i += 2
		}
		return dst, parsed
	case kindInterval:
		months, days, us, st := parseInterval(text)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(months))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(days))
		return binary.LittleEndian.AppendUint64(dst, uint64(us)), st
	}
	us, rest, ok := parseClock(text)
	if !ok {
		return dst, wrong
	}
	off, ok := parseZone(rest)
	if !ok {
		return dst, wrong
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(us))
	return binary.LittleEndian.AppendUint32(dst, uint32(off)), parsed
}

// element appends a value as it stands in an array.
func (c *Column) element(dst, text []byte) ([]byte, status) {
	le := binary.LittleEndian
	switch c.kind {
	case kindBool:
		if len(text) != 1 || text[0] != 't' && text[0] != 'f' {
			return dst, wrong
		}
		return append(dst, byte(b2i(text[0] == 't'))), parsed
	case kindInt, kindUint:
		v, ok := parseInt(text)
		if !ok {
			return dst, wrong
		}
		switch c.batch.Type.Width() {
		case 2:
			return le.AppendUint16(dst, uint16(v)), parsed
		case 4:
			return le.AppendUint32(dst, uint32(v)), parsed
		}
		return le.AppendUint64(dst, uint64(v)), parsed
	case kindFloat:
		v, ok := c.float(text)
		if !ok {
			return dst, wrong
		}
		if c.batch.Type == batch.Float32 {
			return le.AppendUint32(dst, math.Float32bits(float32(v))), parsed
		}
		return le.AppendUint64(dst, math.Float64bits(v)), parsed
	case kindUUID, kindInterval, kindTimeTZ:
		return c.wide(dst, text)
	case kindDate:
		v, st := c.moment(text)
		return le.AppendUint32(dst, uint32(v)), st
	case kindTime, kindTimestamp, kindTimestampTZ:
		v, st := c.moment(text)
		return le.AppendUint64(dst, uint64(v)), st
	case kindBytes:
		if len(text) < 2 || text[0] != '\\' || text[1] != 'x' {
			return dst, wrong
		}
		dst = binary.AppendUvarint(dst, uint64(len(text)-2)/2)
		dst, err := hex.AppendDecode(dst, text[2:])
		if err != nil {
			return dst, wrong
		}
		return dst, parsed
	case kindBit:
		dst = binary.AppendUvarint(dst, uint64(len(text)+7)/8)
		dst, ok := appendBits(dst, text)
		if !ok {
			return dst, wrong
		}
		return dst, parsed
	}
	if c.check && !utf8.Valid(text) {
		return dst, beyond
	}
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...), parsed
}
