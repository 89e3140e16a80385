package value

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Put gives the bytes of a cell to a builder as the next column's value. Bytes that
// are none of the type travel as a raw value named hbase.
func Put(b *batch.Builder, e Encoding, c *batch.Column, data []byte) {
	if e != Text && putBinary(b, e == Phoenix, c, data) {
		return
	}
	if !PutText(b, c, string(data)) {
		b.PutRaw("hbase", data)
	}
}

// PutText gives text, or bytes of types that have no text, to a builder; false: it
// is none of the type, and nothing was put.
func PutText(b *batch.Builder, c *batch.Column, text string) bool {
	switch c.Type {
	case batch.Bool:
		switch text {
		case "0", "1":
			b.PutInt(int64(text[0] - '0'))
		case "true", "false":
			b.PutInt(int64(5 - len(text)))
		default:
			return false
		}
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		n, err := strconv.ParseInt(text, 10, 8<<(c.Type-batch.Int8))
		if err != nil {
			return false
		}
		b.PutInt(n)
	case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64:
		n, err := strconv.ParseUint(text, 10, 8<<(c.Type-batch.Uint8))
		if err != nil {
			return false
		}
		b.PutUint(n)
	case batch.Float32, batch.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return false
		}
		b.PutFloat(f)
	case batch.Decimal:
		if t := strings.TrimPrefix(text, "-"); t == "" || strings.Trim(t, "0123456789.") != "" || strings.Count(t, ".") > 1 || t[0] == '.' || t[len(t)-1] == '.' {
			return false
		}
		b.PutString(text)
	case batch.Year:
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return false
		}
		b.PutInt(int64(n))
	case batch.Time:
		us, ok := parseTime(text)
		if !ok {
			return false
		}
		b.PutInt(us)
	case batch.UUID:
		id, err := uuid.Parse(text)
		if err != nil {
			return false
		}
		b.PutBytes(id[:])
	case batch.Date, batch.DateTime, batch.Timestamp:
		if endless(b, c.Type, text) {
			return true
		}
		d, ok := parseCivil(text)
		if !ok {
			return false
		}
		switch c.Type {
		case batch.Date:
			b.PutInt(int64(batch.PackDate(d.Year, d.Month, d.Day)))
		case batch.DateTime:
			b.PutInt(d.Pack())
		default:
			b.PutInt(d.UnixMicro())
		}
	case batch.String, batch.Bytes, batch.JSON, batch.Enum, batch.Set, batch.Inet, batch.Bit:
		b.PutString(text)
	default:
		return false
	}
	return true
}

// Types are the names of types that rows can be given in.
var Types = map[string]batch.Type{
	"bool": batch.Bool, "int8": batch.Int8, "int16": batch.Int16, "int32": batch.Int32, "int64": batch.Int64,
	"uint8": batch.Uint8, "uint16": batch.Uint16, "uint32": batch.Uint32, "uint64": batch.Uint64, "float32": batch.Float32, "float64": batch.Float64,
	"decimal": batch.Decimal, "string": batch.String, "bytes": batch.Bytes, "json": batch.JSON, "date": batch.Date, "datetime": batch.DateTime, "timestamp": batch.Timestamp,
}

// endless puts the dates that lie before and after all others.
func endless(b *batch.Builder, t batch.Type, text string) bool {
	if text != "infinity" && text != "-infinity" {
		return false
	}
	var v int64
	switch late := text == "infinity"; {
	case t == batch.Date && late:
		v = int64(batch.InfinityDate)
	case t == batch.Date:
		v = int64(batch.NegInfDate)
	case late: // timestamps have the same
		v = batch.InfinityDateTime
	default:
		v = batch.NegInfDateTime
	}
	b.PutInt(v)
	return true
}

// parseTime reads [-]HH:MM:SS[.f] as microseconds.
func parseTime(text string) (us int64, ok bool) {
	abs, negative := strings.CutPrefix(text, "-")
	clock, frac, _ := strings.Cut(abs, ".")
	f := strings.Split(clock, ":")
	if len(f) != 3 || len(frac) > 6 {
		return 0, false
	}
	for i, scale := range []uint64{3600e6, 60e6, 1e6} {
		n, err := strconv.ParseUint(f[i], 10, 32)
		if err != nil || i > 0 && n > 59 {
			return 0, false
		}
		us += int64(n * scale)
	}
	if frac != "" {
		n, err := strconv.ParseUint((frac + "000000")[:6], 10, 32)
		if err != nil {
			return 0, false
		}
		us += int64(n)
	}
	if negative {
		us = -us
	}
	return us, true
}

func parseCivil(text string) (d batch.Civil, ok bool) {
	date, clock, timed := strings.Cut(strings.Replace(text, "T", " ", 1), " ")
	if n, err := fmt.Sscanf(date, "%d-%d-%d", &d.Year, &d.Month, &d.Day); n != 3 || err != nil || d.Month > 12 || d.Day > 31 || d.Month < 0 || d.Day < 0 {
		return d, false
	}
	if !timed {
		return d, true
	}
	clock, frac, _ := strings.Cut(strings.TrimSuffix(clock, "Z"), ".")
	if n, err := fmt.Sscanf(clock, "%d:%d:%d", &d.Hour, &d.Minute, &d.Second); n != 3 || err != nil || d.Hour > 23 || d.Minute > 59 || d.Second > 59 || d.Hour < 0 || d.Minute < 0 || d.Second < 0 {
		return d, false
	}
	if frac != "" {
		mic, err := strconv.ParseUint((frac + "000000")[:6], 10, 32)
		if err != nil {
			return d, false
		}
		d.Mic = int(mic)
	}
	return d, true
}

// putBinary reads the fixed forms; false: it is none of them.
func putBinary(b *batch.Builder, phoenix bool, c *batch.Column, data []byte) bool {
	var flip uint64
	if phoenix {
		flip = 1
	}
	want := map[batch.Type]int{
		batch.Bool: 1, batch.Int8: 1, batch.Int16: 2, batch.Uint8: 2, batch.Int32: 4, batch.Uint16: 4, batch.Int64: 8, batch.Uint32: 8, batch.Uint64: 8,
		batch.Float32: 4, batch.Float64: 8, batch.Timestamp: 8,
	}[c.Type]
	if want == 0 || len(data) != want || phoenix && c.Type == batch.Timestamp {
		return false
	}
	var n uint64
	for _, x := range data {
		n = n<<8 | uint64(x)
	}
	bits := 8 * want
	switch c.Type {
	case batch.Bool:
		b.PutInt(int64(min(n, 1)))
	case batch.Float32:
		x := binary.BigEndian.Uint32(data)
		if phoenix {
			x--
			x ^= uint32(int32(^x)>>31) | 1<<31
		}
		b.PutFloat(float64(math.Float32frombits(x)))
	case batch.Float64:
		if phoenix {
			n--
			n ^= uint64(int64(^n)>>63) | 1<<63
		}
		b.PutFloat(math.Float64frombits(n))
	default:
		n ^= flip << (bits - 1)
		signed := int64(n<<(64-bits)) >> (64 - bits)
		b.PutInt(signed)
	}
	return true
}

// IsDate reports whether text is a date, IsDateTime a date with a time of day.
func IsDate(text string) bool { return len(text) == 10 && isCivil(text) }

// IsDateTime reports whether text is a date with a time of day.
func IsDateTime(text string) bool { return len(text) >= 19 && isCivil(text) }

func isCivil(text string) bool { _, ok := parseCivil(text); return ok }
