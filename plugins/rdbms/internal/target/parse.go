package target

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/datalink-go/datalink/sdk/batch"
)

// ParseClock reads [-]H…:MM:SS[.f…] as microseconds.
func ParseClock(s string) (int64, error) {
	t := strings.TrimPrefix(s, "-")
	parts := strings.Split(t, ":")
	if len(parts) != 3 {
		return 0, fmt.Errorf("%q is no time", s)
	}
	sec, frac, _ := strings.Cut(parts[2], ".")
	h, err1 := strconv.ParseUint(parts[0], 10, 44)
	m, err2 := strconv.ParseUint(parts[1], 10, 8)
	n, err3 := strconv.ParseUint(sec, 10, 8)
	f, err4 := strconv.ParseUint((frac + "000000")[:6], 10, 32)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return 0, fmt.Errorf("%q is no time", s)
	}
	us := int64(((h*60+m)*60+n)*1e6 + f)
	if t != s {
		us = -us
	}
	return us, nil
}

// ParseCivil reads a date, or a date and time, as AppendText writes it.
func ParseCivil(t batch.Type, s string) (int64, error) {
	if s == "infinity" || s == "-infinity" {
		low := s[0] == '-'
		switch {
		case t == batch.Date && low:
			return int64(batch.NegInfDate), nil
		case t == batch.Date:
			return int64(batch.InfinityDate), nil
		case t == batch.DateTime && low:
			return batch.NegInfDateTime, nil
		case t == batch.Timestamp && low:
			return batch.NegInfTimestamp, nil
		}
		return math.MaxInt64, nil
	}
	day, clock, _ := strings.Cut(s, " ")
	neg := strings.HasPrefix(day, "-")
	parts := strings.Split(strings.TrimPrefix(day, "-"), "-")
	if len(parts) != 3 {
		return 0, fmt.Errorf("%q is no date", s)
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil {
			return 0, fmt.Errorf("%q is no date", s)
		}
		n[i] = v
	}
	if neg {
		n[0] = -n[0]
	}
	if t == batch.Date {
		return int64(batch.PackDate(n[0], n[1], n[2])), nil
	}
	us, err := ParseClock(clock)
	if err != nil {
		return 0, err
	}
	c := batch.Civil{Year: n[0], Month: n[1], Day: n[2], Hour: int(us / 3600e6), Minute: int(us / 60e6 % 60), Second: int(us / 1e6 % 60), Mic: int(us % 1e6)}
	if t == batch.DateTime {
		return c.Pack(), nil
	}
	if c == (batch.Civil{}) {
		return batch.ZeroTimestamp, nil
	}
	return time.Date(c.Year, time.Month(c.Month), c.Day, c.Hour, c.Minute, c.Second, c.Mic*1000, time.UTC).UnixMicro(), nil
}

// ParseParts reads an interval or a time with zone.
func ParseParts(t batch.Type, s string) ([]byte, error) {
	if t == batch.Interval {
		f := strings.Fields(s)
		if len(f) != 5 || f[1] != "mons" || f[3] != "days" {
			return nil, fmt.Errorf("%q is no interval", s)
		}
		months, err1 := strconv.ParseInt(f[0], 10, 32)
		days, err2 := strconv.ParseInt(f[2], 10, 32)
		us, err3 := ParseClock(f[4])
		if err1 != nil || err2 != nil || err3 != nil {
			return nil, fmt.Errorf("%q is no interval", s)
		}
		b := binary.LittleEndian.AppendUint32(nil, uint32(months))
		b = binary.LittleEndian.AppendUint32(b, uint32(days))
		return binary.LittleEndian.AppendUint64(b, uint64(us)), nil
	}
	at := strings.LastIndexAny(s, "+-")
	if at < 1 {
		return nil, fmt.Errorf("%q is no time with zone", s)
	}
	us, err := ParseClock(s[:at])
	if err != nil {
		return nil, err
	}
	zone := s[at+1:]
	if strings.Count(zone, ":") == 1 {
		zone += ":00"
	}
	off, err := ParseClock(zone)
	if err != nil {
		return nil, err
	}
	off /= 1e6
	if s[at] == '-' {
		off = -off
	}
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(us)), uint32(int32(off))), nil
}
