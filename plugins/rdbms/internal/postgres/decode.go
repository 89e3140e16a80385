package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// selected is the expression by which a column is read back: in the binary form of
// its wire, or as the text that its type prints.
func (c *column) selected() (expr string, binary bool) {
	if c.wire.cast != "" {
		return "CASE WHEN " + c.name + " IS NOT NULL THEN format('%s', " + c.name + ") END", false
	}
	return c.name, true
}

// load puts a value that was read back as the next value of out: the inverse of
// the column's encoder.
func load(out *batch.Builder, c *batch.Column, i *info, w *wire, v []byte) error {
	if v == nil {
		out.PutNull()
		return nil
	}
	switch c.Type {
	case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year:
		return loadInteger(out, c, w, v)
	case batch.Bit:
		return loadBit(out, c, w, v)
	case batch.Float32, batch.Float64:
		switch w.elem {
		case oidFloat8:
			out.PutFloat(math.Float64frombits(binary.BigEndian.Uint64(v)))
			return nil
		case oidFloat4:
			out.PutFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(v))))
			return nil
		}
		f, err := strconv.ParseFloat(string(v), 64)
		out.PutFloat(f)
		return err
	case batch.Decimal:
		switch w.elem {
		case oidNumeric:
			out.PutBytes(decodeNumeric(v))
		case oidInt2, oidInt4, oidInt8:
			out.PutString(formatInt(bigEndian(v)))
		default:
			out.PutBytes(v)
		}
		return nil
	case batch.Date, batch.Time, batch.DateTime, batch.Timestamp, batch.Interval, batch.TimeTZ:
		return loadTime(out, c, w, v)
	case batch.UUID:
		if w.elem == oidUUID {
			out.PutBytes(v)
			return nil
		}
	case batch.String, batch.Enum, batch.Set, batch.JSON, batch.Inet, batch.Bytes, batch.Geometry, batch.Native:
		if w.elem == oidJSONB {
			v = v[1:]
		}
		if w.elem == oidBytea && c.Type != batch.Bytes && c.Type != batch.Geometry && c.Type != batch.Native {
			out.PutRaw(c.Charset, v)
			return nil
		}
		out.PutBytes(v)
		return nil
	}
	return sdk.Faultf(sdk.CodeUnimplemented, "column %s: values of type %s in a column of another kind are not read back", c.Name, c.Type)
}

func bigEndian(v []byte) int64 {
	switch len(v) {
	case 1:
		return int64(v[0])
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v)))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v)))
	}
	return int64(binary.BigEndian.Uint64(v))
}

func loadInteger(out *batch.Builder, c *batch.Column, w *wire, v []byte) error {
	var text string
	switch w.elem {
	case oidBool, oidInt2, oidInt4, oidInt8:
		out.PutInt(bigEndian(v))
		return nil
	case oidFloat8:
		out.PutInt(int64(math.Float64frombits(binary.BigEndian.Uint64(v))))
		return nil
	case oidNumeric:
		text = string(decodeNumeric(v))
	default:
		text = string(v)
	}
	if c.Type == batch.Uint64 {
		u, err := strconv.ParseUint(text, 10, 64)
		out.PutUint(u)
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	out.PutInt(n)
	return err
}

func loadBit(out *batch.Builder, c *batch.Column, w *wire, v []byte) error {
	var u uint64
	switch w.elem {
	case oidBit, oidVarbit:
		n := int(binary.BigEndian.Uint32(v))
		b := append([]byte{}, v[4:]...)
		shift := uint(8*len(b) - n)
		for k := len(b) - 1; k >= 0; k-- {
			b[k] >>= shift
			if k > 0 {
				b[k] |= byte(uint16(b[k-1]) << (8 - shift))
			}
		}
		out.PutBytes(b)
		return nil
	case oidBytea:
		out.PutBytes(v)
		return nil
	case oidNumeric:
		n, err := strconv.ParseUint(string(decodeNumeric(v)), 10, 64)
		if err != nil {
			return err
		}
		u = n
	case oidBool, oidInt2, oidInt4, oidInt8:
		u = uint64(bigEndian(v))
	default:
		for _, d := range v {
			u = u<<1 | uint64(d-'0')
		}
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], u)
	out.PutBytes(b[8-(c.Length+7)/8:])
	return nil
}

func loadTime(out *batch.Builder, c *batch.Column, w *wire, v []byte) error {
	switch {
	case c.Type == batch.Date && w.elem == oidDate:
		switch d := int32(bigEndian(v)); d {
		case math.MaxInt32:
			out.PutInt(int64(batch.InfinityDate))
		case math.MinInt32:
			out.PutInt(int64(batch.NegInfDate))
		default:
			f := batch.CivilFromUnixMicro((int64(d) + epochDays) * day)
			out.PutInt(int64(batch.PackDate(f.Year, f.Month, f.Day)))
		}
	case c.Type == batch.Time && (w.elem == oidInterval || w.elem == oidTime):
		us := bigEndian(v[:8])
		if w.elem == oidInterval {
			us += (int64(int32(binary.BigEndian.Uint32(v[8:]))) + 30*int64(int32(binary.BigEndian.Uint32(v[12:])))) * day
		}
		out.PutInt(us)
	case c.Type == batch.DateTime && w.elem == oidTimestamp:
		switch us := bigEndian(v); us {
		case math.MaxInt64:
			out.PutInt(batch.InfinityDateTime)
		case math.MinInt64:
			out.PutInt(batch.NegInfDateTime)
		default:
			out.PutInt(batch.CivilFromUnixMicro(us + epochMicro).Pack())
		}
	case c.Type == batch.Timestamp && w.elem == oidTimestampTZ:
		switch us := bigEndian(v); us {
		case math.MaxInt64:
			out.PutInt(batch.InfinityTimestamp)
		case math.MinInt64:
			out.PutInt(batch.NegInfTimestamp)
		default:
			out.PutInt(us + epochMicro)
		}
	case c.Type == batch.Interval && w.elem == oidInterval:
		b := binary.LittleEndian.AppendUint32(nil, binary.BigEndian.Uint32(v[12:]))
		b = binary.LittleEndian.AppendUint32(b, binary.BigEndian.Uint32(v[8:]))
		out.PutBytes(binary.LittleEndian.AppendUint64(b, binary.BigEndian.Uint64(v)))
	case c.Type == batch.TimeTZ && w.elem == oidTimeTZ:
		b := binary.LittleEndian.AppendUint64(nil, binary.BigEndian.Uint64(v))
		out.PutBytes(binary.LittleEndian.AppendUint32(b, uint32(-int32(binary.BigEndian.Uint32(v[8:])))))
	default:
		return sdk.Faultf(sdk.CodeUnimplemented, "column %s: values of type %s that stand as text are not read back", c.Name, c.Type)
	}
	return nil
}

// decodeNumeric is the inverse of numericText.
func decodeNumeric(v []byte) []byte {
	n, weight := int(binary.BigEndian.Uint16(v)), int(int16(binary.BigEndian.Uint16(v[2:])))
	sign, scale := binary.BigEndian.Uint16(v[4:]), int(binary.BigEndian.Uint16(v[6:]))
	var out []byte
	switch sign {
	case numericNaN:
		return []byte("NaN")
	case numericInf:
		return []byte("Infinity")
	case numericNegInf:
		return []byte("-Infinity")
	case numericNegative:
		out = append(out, '-')
	}
	group := func(k int) int { // k counts from the decimal point to the left
		at := weight - k
		if at < 0 || at >= n {
			return 0
		}
		return int(binary.BigEndian.Uint16(v[8+2*at:]))
	}
	from := len(out)
	for k := max(weight, 0); k >= 0; k-- {
		if len(out) == from {
			if g := group(k); g > 0 || k == 0 {
				out = strconv.AppendInt(out, int64(g), 10)
			}
			continue
		}
		out = fmt.Appendf(out, "%04d", group(k))
	}
	if scale > 0 {
		out = append(out, '.')
		at := len(out)
		for k := -1; len(out)-at < scale; k-- {
			out = fmt.Appendf(out, "%04d", group(k))
		}
		out = out[:at+scale]
	}
	return out
}
