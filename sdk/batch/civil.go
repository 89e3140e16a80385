package batch

import (
	"math"
	"strconv"
)

// Timestamps that are no instant. MySQL has the zero timestamp, PostgreSQL the
// infinities.
const (
	ZeroTimestamp     int64 = math.MinInt64
	NegInfTimestamp   int64 = math.MinInt64 + 1
	InfinityTimestamp int64 = math.MaxInt64
)

// Packed dates that are no day (PostgreSQL).
const (
	NegInfDate   int32 = math.MinInt32
	InfinityDate int32 = math.MaxInt32
)

// Packed civil times that are no moment (PostgreSQL).
const (
	NegInfDateTime   int64 = math.MinInt64
	InfinityDateTime int64 = math.MaxInt64
)

// Civil is a date and time of day without a zone. All fields may be zero
// (0000-00-00 and 2026-00-10 exist in MySQL), and years run from -131072 to
// 131071; what lies outside travels as a raw value.
type Civil struct {
	Year                      int
	Month, Day                int
	Hour, Minute, Second, Mic int // Mic: microseconds, 0 to 999999
}

// PackDate packs year<<9 | month<<5 | day. Years: -4194304 to 4194303.
func PackDate(year, month, day int) int32 { return int32(year<<9 | month<<5 | day) }

// UnpackDate is the inverse of PackDate.
func UnpackDate(v int32) (year, month, day int) {
	return int(v >> 9), int(v>>5) & 15, int(v) & 31
}

// Pack packs year<<46 | month<<42 | day<<37 | hour<<32 | minute<<26 | second<<20 | microsecond.
func (c Civil) Pack() int64 {
	return int64(c.Year)<<46 | int64(c.Month)<<42 | int64(c.Day)<<37 | int64(c.Hour)<<32 |
		int64(c.Minute)<<26 | int64(c.Second)<<20 | int64(c.Mic)
}

// UnpackDateTime is the inverse of Civil.Pack.
func UnpackDateTime(v int64) Civil {
	return Civil{
		Year: int(v >> 46), Month: int(v>>42) & 15, Day: int(v>>37) & 31, Hour: int(v>>32) & 31,
		Minute: int(v>>26) & 63, Second: int(v>>20) & 63, Mic: int(v) & 0xFFFFF,
	}
}

func appendPadded(dst []byte, v, width int) []byte {
	if v < 0 {
		dst = append(dst, '-')
		v = -v
	}
	var buf [20]byte
	s := strconv.AppendInt(buf[:0], int64(v), 10)
	for i := len(s); i < width; i++ {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}

func appendFraction(dst []byte, mic, scale int) []byte {
	if scale <= 0 {
		return dst
	}
	if scale > 6 {
		scale = 6
	}
	dst = append(dst, '.')
	div := 100000
	for range scale {
		dst = append(dst, byte('0'+mic/div%10))
		div /= 10
	}
	return dst
}

// AppendDate appends a packed date as YYYY-MM-DD, infinity or -infinity.
func AppendDate(dst []byte, v int32) []byte {
	switch v {
	case InfinityDate:
		return append(dst, "infinity"...)
	case NegInfDate:
		return append(dst, "-infinity"...)
	}
	y, m, d := UnpackDate(v)
	dst = append(appendPadded(dst, y, 4), '-')
	dst = append(appendPadded(dst, m, 2), '-')
	return appendPadded(dst, d, 2)
}

// AppendTime appends signed microseconds as [-]HH:MM:SS[.f…] with scale
// fractional digits (0 to 6).
func AppendTime(dst []byte, v int64, scale int) []byte {
	u := uint64(v)
	if v < 0 {
		dst = append(dst, '-')
		u = -u
	}
	mic := int(u % 1e6)
	s := u / 1e6
	dst = append(appendPadded(dst, int(s/3600), 2), ':')
	dst = append(appendPadded(dst, int(s/60%60), 2), ':')
	dst = appendPadded(dst, int(s%60), 2)
	return appendFraction(dst, mic, scale)
}

// AppendDateTime appends a packed civil time as YYYY-MM-DD HH:MM:SS[.f…] with
// scale fractional digits, infinity or -infinity.
func AppendDateTime(dst []byte, v int64, scale int) []byte {
	switch v {
	case InfinityDateTime:
		return append(dst, "infinity"...)
	case NegInfDateTime:
		return append(dst, "-infinity"...)
	}
	return appendCivil(dst, UnpackDateTime(v), scale)
}

func appendCivil(dst []byte, c Civil, scale int) []byte {
	dst = append(AppendDate(dst, PackDate(c.Year, c.Month, c.Day)), ' ')
	dst = append(appendPadded(dst, c.Hour, 2), ':')
	dst = append(appendPadded(dst, c.Minute, 2), ':')
	dst = appendPadded(dst, c.Second, 2)
	return appendFraction(dst, c.Mic, scale)
}

// AppendTimestamp appends microseconds since the epoch as a civil time in UTC;
// ZeroTimestamp is 0000-00-00 00:00:00.
func AppendTimestamp(dst []byte, v int64, scale int) []byte {
	switch v {
	case ZeroTimestamp:
		return AppendDateTime(dst, 0, scale)
	case InfinityTimestamp:
		return append(dst, "infinity"...)
	case NegInfTimestamp:
		return append(dst, "-infinity"...)
	}
	return appendCivil(dst, CivilFromUnixMicro(v), scale)
}

// CivilFromUnixMicro converts microseconds since 1970-01-01 UTC to the
// proleptic Gregorian calendar.
func CivilFromUnixMicro(us int64) Civil {
	days := us / 86400e6
	rest := us % 86400e6
	if rest < 0 {
		rest += 86400e6
		days--
	}
	// Days to civil date by eras of 400 years, counted from 0000-03-01.
	z := days + 719468
	era := z / 146097
	if z < 0 && z%146097 != 0 {
		era--
	}
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day := doy - (153*mp+2)/5 + 1
	month := mp + 3
	if month > 12 {
		month -= 12
	}
	year := yoe + era*400
	if month <= 2 {
		year++
	}
	sec := rest / 1e6
	return Civil{
		Year: int(year), Month: int(month), Day: int(day),
		Hour: int(sec / 3600), Minute: int(sec / 60 % 60), Second: int(sec % 60), Mic: int(rest % 1e6),
	}
}

// UnixMicro converts a civil time in UTC to microseconds since 1970-01-01, by the
// proleptic Gregorian calendar. For a date that is none (month or day 0, 31
// February) the result means nothing: check beforehand.
func (c Civil) UnixMicro() int64 {
	y, m := int64(c.Year), int64(c.Month)
	if m <= 2 {
		y--
		m += 12
	}
	era := y / 400
	if y < 0 && y%400 != 0 {
		era--
	}
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + int64(c.Day) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	days := era*146097 + doe - 719468
	return ((days*24+int64(c.Hour))*60+int64(c.Minute))*60e6 + int64(c.Second)*1e6 + int64(c.Mic)
}
