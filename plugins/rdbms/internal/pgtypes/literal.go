package pgtypes

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/datalink-go/datalink/sdk/batch"
)

// AppendText appends a value as the server reads it, without quotes: what goes
// between ” and ::type. Ok is false for values that have no such form here.
func AppendText(dst []byte, col *batch.Column, v *batch.Value) (out []byte, ok bool) {
	if _, data, raw := v.Raw(); raw {
		return append(dst, data...), true
	}
	le := binary.LittleEndian
	switch col.Type {
	case batch.Bool:
		return strconv.AppendBool(dst, v.Uint64() != 0), true
	case batch.Bytes:
		return hex.AppendEncode(append(dst, `\x`...), v.Bytes()), true
	case batch.Native:
		return append(dst, v.Bytes()...), true
	case batch.Bit:
		p := v.Bytes()
		for i := int(col.Length) - 1; i >= 0; i-- {
			dst = append(dst, '0'+p[len(p)-1-i/8]>>(i%8)&1)
		}
		return dst, true
	case batch.Interval:
		p := v.Bytes()
		dst = append(strconv.AppendInt(append(dst, 'P'), int64(int32(le.Uint32(p))), 10), 'M')
		dst = append(strconv.AppendInt(dst, int64(int32(le.Uint32(p[4:]))), 10), 'D', 'T')
		us := int64(le.Uint64(p[8:]))
		// Each part has its own sign; one part alone would be read as a double.
		dst = append(strconv.AppendInt(dst, us/3600e6, 10), 'H')
		dst = append(strconv.AppendInt(dst, us/60e6%60, 10), 'M')
		if us %= 60e6; us < 0 {
			dst, us = append(dst, '-'), -us
		}
		dst = strconv.AppendInt(dst, us/1e6, 10)
		return append(fraction(dst, us%1e6), 'S'), true
	case batch.TimeTZ:
		p := v.Bytes()
		dst = batch.AppendTime(dst, int64(le.Uint64(p)), 6)
		off := int(int32(le.Uint32(p[8:])))
		sign := byte('+')
		if off < 0 {
			sign, off = '-', -off
		}
		dst = append(dst, sign)
		for i, part := range []int{off / 3600, off / 60 % 60, off % 60} {
			if i > 0 {
				dst = append(dst, ':')
			}
			dst = append(dst, byte('0'+part/10), byte('0'+part%10))
		}
		return dst, true
	case batch.Date, batch.DateTime, batch.Timestamp:
		return appendMoment(dst, col, v.Int64()), true
	}
	return batch.AppendText(dst, col, v)
}

func fraction(dst []byte, f int64) []byte {
	dst = append(dst, '.')
	for div := int64(100000); div > 0; div /= 10 {
		dst = append(dst, byte('0'+f/div%10))
	}
	return dst
}

// appendMoment prints years before 1 with BC.
func appendMoment(dst []byte, col *batch.Column, n int64) []byte {
	bc := false
	switch {
	case col.Type == batch.Date && int32(n) != batch.NegInfDate && int32(n) != batch.InfinityDate:
		if y, m, d := batch.UnpackDate(int32(n)); y <= 0 {
			bc, n = true, int64(batch.PackDate(1-y, m, d))
		}
		dst = batch.AppendDate(dst, int32(n))
	case col.Type == batch.Date:
		dst = batch.AppendDate(dst, int32(n))
	case col.Type == batch.DateTime && n != batch.NegInfDateTime && n != batch.InfinityDateTime:
		c := batch.UnpackDateTime(n)
		if c.Year <= 0 {
			bc, c.Year = true, 1-c.Year
		}
		dst = batch.AppendDateTime(dst, c.Pack(), 6)
	case col.Type == batch.DateTime:
		dst = batch.AppendDateTime(dst, n, 6)
	case n == batch.NegInfTimestamp || n == batch.InfinityTimestamp:
		dst = batch.AppendTimestamp(dst, n, 6)
	default:
		c := batch.CivilFromUnixMicro(n)
		if c.Year <= 0 {
			bc, c.Year = true, 1-c.Year
		}
		dst = append(batch.AppendDateTime(dst, c.Pack(), 6), "+00"...)
	}
	if bc {
		dst = append(dst, " BC"...)
	}
	return dst
}
