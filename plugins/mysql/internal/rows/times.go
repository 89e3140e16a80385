package rows

import (
	"encoding/binary"

	"github.com/datalink-go/datalink/sdk/batch"
)

func be24(b []byte) int64 { return int64(b[0])<<16 | int64(b[1])<<8 | int64(b[2]) }

func be40(b []byte) int64 { return int64(b[0])<<32 | int64(binary.BigEndian.Uint32(b[1:])) }

// micros reads the fraction of a second that follows a time, for 1 to 6 digits.
func micros(b []byte, digits uint8) int64 {
	switch digits {
	case 1, 2:
		return int64(b[0]) * 10000
	case 3, 4:
		return int64(binary.BigEndian.Uint16(b)) * 100
	case 5, 6:
		return be24(b)
	}
	return 0
}

// time2 reads a TIME of MySQL 5.6 and later: a biased count whose fraction
// belongs to the whole, so that -00:00:00.1 is one less than 0 plus 0.9
// (sql-common/my_time.cc, my_time_packed_from_binary).
func time2(b []byte, digits uint8) int64 {
	whole := be24(b) - 0x800000
	var frac int64
	switch digits {
	case 1, 2:
		if frac = int64(b[3]); whole < 0 && frac > 0 {
			whole++
			frac -= 0x100
		}
		frac *= 10000
	case 3, 4:
		if frac = int64(binary.BigEndian.Uint16(b[3:])); whole < 0 && frac > 0 {
			whole++
			frac -= 0x10000
		}
		frac *= 100
	case 5, 6:
		return clock((be24(b)<<24 | be24(b[3:])) - 0x800000000000)
	}
	return clock(whole<<24 + frac)
}

// clock turns the server's packed time (hour<<12 | minute<<6 | second, then 24
// bits of microseconds) into microseconds.
func clock(packed int64) int64 {
	neg := packed < 0
	if neg {
		packed = -packed
	}
	hms := packed >> 24
	us := ((hms>>12&0x3FF)*3600+(hms>>6&63)*60+hms&63)*1e6 + packed&0xFFFFFF
	if neg {
		return -us
	}
	return us
}

// oldTime reads a TIME of MySQL before 5.6: hhmmss as a decimal number.
func oldTime(b []byte) int64 {
	v := int64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24) >> 8)
	neg := v < 0
	if neg {
		v = -v
	}
	us := (v/10000*3600 + v/100%100*60 + v%100) * 1e6
	if neg {
		return -us
	}
	return us
}

// dateTime2 reads a DATETIME of MySQL 5.6 and later into the packed form of
// package batch.
func dateTime2(b []byte, digits uint8) int64 {
	v := be40(b) - 0x8000000000
	ymd, hms := v>>17, v&0x1FFFF
	ym := ymd >> 5
	return (ym/13)<<46 | (ym%13)<<42 | (ymd&31)<<37 | (hms>>12)<<32 | (hms>>6&63)<<26 | (hms&63)<<20 | micros(b[5:], digits)
}

// oldDateTime reads a DATETIME of MySQL before 5.6: YYYYMMDDhhmmss as a number.
func oldDateTime(b []byte) int64 {
	v := int64(binary.LittleEndian.Uint64(b))
	d, t := v/1000000, v%1000000
	return batch.Civil{
		Year: int(d / 10000), Month: int(d / 100 % 100), Day: int(d % 100),
		Hour: int(t / 10000), Minute: int(t / 100 % 100), Second: int(t % 100),
	}.Pack()
}

// timestamp turns seconds and microseconds into the form of package batch;
// second 0 is the zero timestamp.
func timestamp(sec uint32, us int64) int64 {
	if sec == 0 && us == 0 {
		return batch.ZeroTimestamp
	}
	return int64(sec)*1e6 + us
}
