package postgres

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// farMoment encodes a date or time stamp as PostgreSQL prints it in UTC, of a year
// that the batch has no room for. Ok is false for all else.
func farMoment(dst []byte, oid uint32, text string) (out []byte, ok bool) {
	date, clock, _ := strings.Cut(text, " ")
	f := strings.Split(date, "-")
	if len(f) != 3 {
		return dst, false
	}
	var n [3]int
	for i := range f {
		v, err := strconv.ParseUint(f[i], 10, 31)
		if err != nil {
			return dst, false
		}
		n[i] = int(v)
	}
	days, ok := civilDay(n[0], n[1], n[2])
	if days -= epochDays; !ok {
		return dst, false
	}
	if oid == oidDate {
		if clock != "" || days < firstDay || days > lastDay {
			return dst, false
		}
		return binary.BigEndian.AppendUint32(dst, uint32(int32(days))), true
	}
	if oid == oidTimestampTZ {
		if clock, ok = strings.CutSuffix(clock, "+00"); !ok {
			return dst, false
		}
	}
	us, ok := clockMicros(clock)
	if !ok || days > lastMicro/day {
		return dst, false
	}
	if us += days * day; us < firstMicro || us >= lastMicro {
		return dst, false
	}
	return putMicro(dst, us), true
}

// clockMicros reads HH:MM:SS with up to six digits behind a point.
func clockMicros(s string) (int64, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	f := strings.Split(whole, ":")
	if len(f) != 3 || len(frac) > 6 {
		return 0, false
	}
	us := int64(0)
	for i, most := range []uint64{23, 59, 59} {
		v, err := strconv.ParseUint(f[i], 10, 8)
		if err != nil || v > most || len(f[i]) != 2 {
			return 0, false
		}
		us = us*60 + int64(v)
	}
	us *= 1e6
	if frac != "" {
		v, err := strconv.ParseUint(frac, 10, 32)
		if err != nil {
			return 0, false
		}
		us += int64(v) * pow10[6-len(frac)]
	}
	return us, true
}
