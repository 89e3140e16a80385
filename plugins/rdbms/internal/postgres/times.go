package postgres

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/datalink-go/datalink/sdk/batch"
)

const (
	day = 86400e6
	// PostgreSQL counts from 2000-01-01.
	epochDays  = 10957
	epochMicro = epochDays * day
	// The first and last values of its types, counted so: the Julian day 0 in 4714
	// BC, and the years 5874897 (date) and 294276 (timestamp).
	firstDay   = -2451545
	lastDay    = 2145031948
	firstMicro = -211813488000000000
	lastMicro  = 9223371331200000000
)

var pow10 = [...]int64{1, 10, 100, 1000, 10000, 100000, 1000000}

// civilDay reports whether a date exists, and counts its days from 1970-01-01.
func civilDay(y, m, d int) (int64, bool) {
	if m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, false
	}
	if leap := y%4 == 0 && (y%100 != 0 || y%400 == 0); m == 2 && (d > 29 || d == 29 && !leap) || d == 31 && (m == 4 || m == 6 || m == 9 || m == 11) {
		return 0, false
	}
	// Years begin in March, so that the day that leap years have more is the last of
	// one; eras are the 400 years after which the calendar repeats itself.
	if m -= 3; m < 0 {
		m, y = m+12, y-1
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yoe := y - era*400
	doe := yoe*365 + yoe/4 - yoe/100 + (153*m+2)/5 + d - 1
	return int64(era)*146097 + int64(doe) - 719468, true
}

func encodeDate(dst []byte, _ *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	p := int32(v.Int64())
	switch p {
	case batch.InfinityDate:
		return binary.BigEndian.AppendUint32(dst, math.MaxInt32), nil
	case batch.NegInfDate:
		return binary.BigEndian.AppendUint32(dst, 1<<31), nil
	}
	y, m, d := batch.UnpackDate(p)
	days, ok := civilDay(y, m, d)
	if days -= epochDays; !ok || days < firstDay || days > lastDay {
		return dst, misfitf(nil, "%s is no date of PostgreSQL", batch.AppendDate(nil, p))
	}
	return binary.BigEndian.AppendUint32(dst, uint32(int32(days))), nil
}

// rounded says that the column has fewer fractional digits than the value.
func rounded(dst []byte, i *info, us int64, text []byte, put func([]byte, int64) []byte) ([]byte, *misfit) {
	if n := i.limit(); n >= 0 && n < 6 && us%pow10[6-n] != 0 {
		cut := us - us%pow10[6-n]
		return dst, misfitf(put([]byte{}, cut), "its type has %d fractional digits, found %s", n, text)
	}
	return put(dst, us), nil
}

func putMicro(dst []byte, us int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(us)) }

func encodeDateTime(dst []byte, c *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	p := v.Int64()
	switch p {
	case batch.InfinityDateTime:
		return putMicro(dst, math.MaxInt64), nil
	case batch.NegInfDateTime:
		return putMicro(dst, math.MinInt64), nil
	}
	f := batch.UnpackDateTime(p)
	_, ok := civilDay(f.Year, f.Month, f.Day)
	us := f.UnixMicro() - epochMicro
	if !ok || f.Hour > 23 || f.Minute > 59 || f.Second > 59 || us < firstMicro || us >= lastMicro {
		return dst, misfitf(nil, "%s is no timestamp of PostgreSQL", batch.AppendDateTime(nil, p, 6))
	}
	return rounded(dst, i, us, batch.AppendDateTime(nil, p, 6), putMicro)
}

func encodeTimestamp(dst []byte, _ *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	t := v.Int64()
	switch t {
	case batch.InfinityTimestamp:
		return putMicro(dst, math.MaxInt64), nil
	case batch.NegInfTimestamp:
		return putMicro(dst, math.MinInt64), nil
	}
	us := t - epochMicro
	if t == batch.ZeroTimestamp || us < firstMicro || us >= lastMicro || us > t {
		return dst, misfitf(nil, "%s is no timestamp of PostgreSQL", batch.AppendTimestamp(nil, t, 6))
	}
	if i.limit() >= 0 {
		return rounded(dst, i, us, batch.AppendTimestamp(nil, t, 6), putMicro)
	}
	return putMicro(dst, us), nil
}

func encodeTime(dst []byte, _ *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	us := v.Int64()
	switch {
	case us < 0:
		return dst, misfitf(putMicro(nil, 0), "time has no %s", batch.AppendTime(nil, us, 6))
	case us > day:
		return dst, misfitf(putMicro(nil, day), "time has no %s", batch.AppendTime(nil, us, 6))
	}
	return rounded(dst, i, us, batch.AppendTime(nil, us, 6), putMicro)
}

func putInterval(dst []byte, us int64) []byte {
	return append(putMicro(dst, us), 0, 0, 0, 0, 0, 0, 0, 0)
}

func encodeTimeAsInterval(dst []byte, _ *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	return putInterval(dst, v.Int64()), nil
}

func encodeInterval(dst []byte, _ *batch.Column, _ *info, v *batch.Value) ([]byte, *misfit) {
	b := v.Bytes()
	dst = putMicro(dst, int64(binary.LittleEndian.Uint64(b[8:])))
	dst = binary.BigEndian.AppendUint32(dst, binary.LittleEndian.Uint32(b[4:]))
	return binary.BigEndian.AppendUint32(dst, binary.LittleEndian.Uint32(b)), nil
}

func encodeTimeTZ(dst []byte, c *batch.Column, i *info, v *batch.Value) ([]byte, *misfit) {
	b := v.Bytes()
	us, zone := int64(binary.LittleEndian.Uint64(b)), int32(binary.LittleEndian.Uint32(b[8:]))
	return rounded(dst, i, us, timeTZText(c, b), func(dst []byte, us int64) []byte {
		return binary.BigEndian.AppendUint32(putMicro(dst, us), uint32(-zone))
	})
}

// fraction returns the microseconds of a time.
func fraction(c *batch.Column, v *batch.Value) int64 {
	switch c.Type {
	case batch.DateTime:
		return int64(batch.UnpackDateTime(v.Int64()).Mic)
	case batch.Timestamp:
		if v.Int64() == batch.ZeroTimestamp {
			return 0
		}
	}
	return v.Int64() % 1e6
}

// intervalText prints the three parts of an interval, each with its own sign.
func intervalText(b []byte) []byte {
	dst := strconv.AppendInt(nil, int64(int32(binary.LittleEndian.Uint32(b))), 10)
	dst = append(dst, " mons "...)
	dst = strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(b[4:]))), 10)
	dst = append(dst, " days "...)
	return batch.AppendTime(dst, int64(binary.LittleEndian.Uint64(b[8:])), 6)
}

// timeTZText prints a time of day with its offset: "04:05:06+01:30".
func timeTZText(_ *batch.Column, b []byte) []byte {
	dst := batch.AppendTime(nil, int64(binary.LittleEndian.Uint64(b)), 6)
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
