package postgres

import (
	"bytes"
	"encoding/binary"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Signs of PostgreSQL's binary numeric (numeric_send in numeric.c).
const (
	numericNegative = 0x4000
	numericNaN      = 0xC000
	numericInf      = 0xD000
	numericNegInf   = 0xF000
)

func encodeNumeric(dst []byte, _ *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	return numericText(dst, i, v.Bytes())
}

// numericText encodes decimal text, and looks whether numeric(p,s) holds it as it
// is: PostgreSQL would round.
func numericText(dst []byte, i *info, t []byte) ([]byte, *misfit) {
	p, s, limited := i.digits()
	switch string(t) {
	case "NaN":
		return appendNumericHeader(dst, 0, 0, numericNaN, 0), nil
	case "Infinity", "-Infinity":
		if limited {
			return dst, misfitf(nil, "numeric(%d,%d) holds no infinity", p, s)
		}
		if t[0] == '-' {
			return appendNumericHeader(dst, 0, 0, numericNegInf, 0), nil
		}
		return appendNumericHeader(dst, 0, 0, numericInf, 0), nil
	}
	neg, whole, frac := splitDecimal(t)
	if limited {
		need := frac
		if s >= 0 {
			need = bytes.TrimRight(frac, "0")
		}
		if len(need) > max(s, 0) || len(whole) > p-s {
			return dst, misfitf(nearestNumeric(neg, whole, frac, p, s), "numeric(%d,%d) cannot hold %s", p, s, t)
		}
	}
	return appendNumeric(dst, neg, whole, frac), nil
}

func splitDecimal(t []byte) (neg bool, whole, frac []byte) {
	if len(t) > 0 && (t[0] == '-' || t[0] == '+') {
		neg = t[0] == '-'
		t = t[1:]
	}
	whole, frac, _ = bytes.Cut(t, []byte{'.'})
	return neg, bytes.TrimLeft(whole, "0"), frac
}

// nearestNumeric is the value cut to the digits of numeric(p,s), the largest where
// its whole part is too long.
func nearestNumeric(neg bool, whole, frac []byte, p, s int) []byte {
	if s < 0 {
		return nil
	}
	if len(whole) > p-s {
		return appendNumeric([]byte{}, neg, bytes.Repeat([]byte{'9'}, max(p-s, 0)), bytes.Repeat([]byte{'9'}, s))
	}
	return appendNumeric([]byte{}, neg, whole, frac[:min(len(frac), s)])
}

func appendNumericHeader(dst []byte, digits, weight int, sign uint16, scale int) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(digits))
	dst = binary.BigEndian.AppendUint16(dst, uint16(int16(weight)))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	return binary.BigEndian.AppendUint16(dst, uint16(scale))
}

// appendNumeric writes digits in groups of four, counted from the decimal point.
func appendNumeric(dst []byte, neg bool, whole, frac []byte) []byte {
	at := len(dst)
	dst = appendNumericHeader(dst, 0, 0, 0, 0)
	groups := (len(whole) + 3) / 4
	weight, n := groups-1, 0
	add := func(g uint16) {
		if g == 0 && n == 0 {
			weight--
			return
		}
		dst = binary.BigEndian.AppendUint16(dst, g)
		n++
	}
	for k := range groups {
		end := len(whole) - 4*(groups-1-k)
		g := uint16(0)
		for _, d := range whole[max(end-4, 0):end] {
			g = g*10 + uint16(d-'0')
		}
		add(g)
	}
	for k := 0; k < len(frac); k += 4 {
		g := uint16(0)
		for j := k; j < k+4; j++ {
			g *= 10
			if j < len(frac) {
				g += uint16(frac[j] - '0')
			}
		}
		add(g)
	}
	for n > 0 && dst[len(dst)-1] == 0 && dst[len(dst)-2] == 0 {
		dst = dst[:len(dst)-2]
		n--
	}
	sign := uint16(0)
	if n == 0 {
		weight = 0
	} else if neg {
		sign = numericNegative
	}
	appendNumericHeader(dst[:at], n, weight, sign, len(frac))
	return dst
}
