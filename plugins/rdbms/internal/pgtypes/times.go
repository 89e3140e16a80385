package pgtypes

import (
	"bytes"

	"github.com/datalink-go/datalink/sdk/batch"
)

// status says what became of a text: a value, one that the logical type cannot
// hold, or none of the type.
type status uint8

const (
	wrong status = iota
	parsed
	beyond
)

// Years that a packed civil time and a packed date hold, see batch.Civil.
const (
	maxYear     = 131071
	maxDateYear = 4194303
	// microseconds since 1970 in 64 bits end in January 294247
	maxTimestampYear = 294246
)

// moment reads dates and times that are one number. Years before 1 are counted
// as astronomers do: 1 BC is the year 0.
func (c *Column) moment(text []byte) (int64, status) {
	if c.kind == kindTime {
		us, rest, ok := parseClock(text)
		if !ok || len(rest) > 0 {
			return 0, wrong
		}
		return us, parsed
	}
	if len(text) > 0 && (text[0] == 'i' || text[0] == '-') {
		sign, word := 1, text
		if text[0] == '-' {
			sign, word = -1, text[1:]
		}
		if string(word) != "infinity" {
			return 0, wrong
		}
		return c.infinite(sign), parsed
	}
	text, bc := bytes.CutSuffix(text, []byte(" BC"))
	year, text, ok := number(text, 4, 7)
	if !ok || len(text) < 6 || text[0] != '-' || text[3] != '-' {
		return 0, wrong
	}
	month, _, ok1 := number(text[1:3], 2, 2)
	day, _, ok2 := number(text[4:6], 2, 2)
	if !ok1 || !ok2 {
		return 0, wrong
	}
	text = text[6:]
	if bc {
		year = 1 - year
	}
	if c.kind == kindDate {
		if len(text) > 0 {
			return 0, wrong
		}
		if year > maxDateYear || year < -maxDateYear {
			return 0, beyond
		}
		return int64(batch.PackDate(year, month, day)), parsed
	}
	if len(text) < 9 || text[0] != ' ' {
		return 0, wrong
	}
	us, rest, ok := parseClock(text[1:])
	if !ok {
		return 0, wrong
	}
	if c.kind == kindTimestampTZ {
		off, ok := parseZone(rest)
		if !ok {
			return 0, wrong
		}
		if year > maxTimestampYear {
			return 0, beyond
		}
		day := batch.Civil{Year: year, Month: month, Day: day}
		return day.UnixMicro() + us - int64(off)*1e6, parsed
	}
	if len(rest) > 0 {
		return 0, wrong
	}
	if year > maxYear || year < -maxYear {
		return 0, beyond
	}
	s := us / 1e6
	return batch.Civil{
		Year: year, Month: month, Day: day, Hour: int(s / 3600), Minute: int(s / 60 % 60), Second: int(s % 60), Mic: int(us % 1e6),
	}.Pack(), parsed
}

func (c *Column) infinite(sign int) int64 {
	switch {
	case c.kind == kindDate && sign > 0:
		return int64(batch.InfinityDate)
	case c.kind == kindDate:
		return int64(batch.NegInfDate)
	case c.kind == kindTimestamp && sign > 0:
		return batch.InfinityDateTime
	case c.kind == kindTimestamp:
		return batch.NegInfDateTime
	case sign > 0:
		return batch.InfinityTimestamp
	}
	return batch.NegInfTimestamp
}

// number reads between least and most digits.
func number(p []byte, least, most int) (v int, rest []byte, ok bool) {
	n := 0
	for n < len(p) && n < most {
		d := p[n] - '0'
		if d > 9 {
			break
		}
		v = v*10 + int(d)
		n++
	}
	return v, p[n:], n >= least
}

// parseClock reads HH:MM:SS[.ffffff].
func parseClock(p []byte) (us int64, rest []byte, ok bool) {
	if len(p) < 8 || p[2] != ':' || p[5] != ':' {
		return 0, p, false
	}
	h, _, ok1 := number(p[:2], 2, 2)
	m, _, ok2 := number(p[3:5], 2, 2)
	s, _, ok3 := number(p[6:8], 2, 2)
	if !ok1 || !ok2 || !ok3 {
		return 0, p, false
	}
	us = int64(h*3600+m*60+s) * 1e6
	p = p[8:]
	if len(p) == 0 || p[0] != '.' {
		return us, p, true
	}
	f, after, ok := number(p[1:], 1, 6)
	if !ok {
		return 0, p, false
	}
	for n := len(p) - 1 - len(after); n < 6; n++ {
		f *= 10
	}
	return us + int64(f), after, true
}

// parseZone reads +HH[:MM[:SS]] to the end, in seconds east of UTC.
func parseZone(p []byte) (int, bool) {
	if len(p) < 3 || p[0] != '+' && p[0] != '-' {
		return 0, false
	}
	sign := 1
	if p[0] == '-' {
		sign = -1
	}
	off, p, ok := number(p[1:], 2, 2)
	off *= 3600
	for unit := 60; ok && len(p) > 0 && unit > 0; unit /= 60 {
		var v int
		if p[0] != ':' {
			return 0, false
		}
		v, p, ok = number(p[1:], 2, 2)
		off += v * unit
	}
	return sign * off, ok && len(p) == 0
}

// parseInterval reads an interval in ISO 8601 with designators: P1Y-2M3DT-4H5M-6.7S.
func parseInterval(p []byte) (months, days int32, us int64, st status) {
	if len(p) < 2 || p[0] != 'P' {
		if string(p) == "infinity" || string(p) == "-infinity" {
			return 0, 0, 0, beyond
		}
		return 0, 0, 0, wrong
	}
	inTime := false
	var m, d int64
	for p = p[1:]; len(p) > 0; {
		if p[0] == 'T' && !inTime {
			inTime, p = true, p[1:]
			continue
		}
		n := 0
		for n < len(p) && (p[n] == '-' || p[n]-'0' <= 9) {
			n++
		}
		v, ok := parseInt(p[:n])
		if !ok || n == len(p) {
			return 0, 0, 0, wrong
		}
		neg := p[0] == '-'
		p = p[n:]
		var frac int64
		if p[0] == '.' {
			f, rest, ok := number(p[1:], 1, 6)
			if !ok || len(rest) == 0 || rest[0] != 'S' {
				return 0, 0, 0, wrong
			}
			for k := len(p) - 1 - len(rest); k < 6; k++ {
				f *= 10
			}
			frac, p = int64(f), rest
			if neg {
				frac = -frac
			}
		}
		switch unit := p[0]; {
		case !inTime && unit == 'Y':
			m += v * 12
		case !inTime && unit == 'M':
			m += v
		case !inTime && unit == 'D':
			d += v
		case inTime && unit == 'H':
			us += v * 3600e6
		case inTime && unit == 'M':
			us += v * 60e6
		case inTime && unit == 'S':
			us += v*1e6 + frac
		default:
			return 0, 0, 0, wrong
		}
		p = p[1:]
	}
	if int64(int32(m)) != m || int64(int32(d)) != d {
		return 0, 0, 0, beyond
	}
	return int32(m), int32(d), us, parsed
}
