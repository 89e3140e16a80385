package sqlite

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/datalink-go/datalink/sdk/batch"
)

// load puts a stored value as the next value of out: the inverse of
// encoder.value. A BLOB in a column of another class is a raw value.
func load(out *batch.Builder, c *batch.Column, v driver.Value) error {
	switch v := v.(type) {
	case nil:
		out.PutNull()
		return nil
	case []byte:
		if classOf(c) == asBlob {
			out.PutBytes(v)
		} else {
			out.PutRaw(rawName(c), v)
		}
		return nil
	case int64:
		return loadNumber(out, c, uint64(v), v)
	case float64:
		if classOf(c) != asReal {
			return fmt.Errorf("a REAL in a column of type %s", c.Type)
		}
		out.PutFloat(v)
		return nil
	case string:
		return loadText(out, c, v)
	}
	return fmt.Errorf("a value of type %T", v)
}

func rawName(c *batch.Column) string {
	if c.Charset != "" {
		return c.Charset
	}
	return c.Native
}

func loadNumber(out *batch.Builder, c *batch.Column, u uint64, i int64) error {
	switch {
	case c.Type == batch.Bit && classOf(c) == asNumber:
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], u)
		out.PutBytes(b[8-(c.Length+7)/8:])
	case classOf(c) == asNumber:
		out.PutUint(u)
	case classOf(c) == asInteger:
		out.PutInt(i)
	case classOf(c) == asReal:
		out.PutFloat(float64(i))
	default:
		return fmt.Errorf("the integer %d in a column of type %s", i, c.Type)
	}
	return nil
}

func loadText(out *batch.Builder, c *batch.Column, s string) error {
	switch c.Type {
	case batch.Uint64, batch.Bit:
		u, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return err
		}
		return loadNumber(out, c, u, int64(u))
	case batch.Float32, batch.Float64:
		if s != "NaN" {
			return fmt.Errorf("the text %q in a column of type %s", s, c.Type)
		}
		out.PutFloat(math.NaN())
	case batch.Year:
		y, err := strconv.ParseUint(s, 10, 16)
		if err != nil {
			return err
		}
		out.PutUint(y)
	case batch.UUID:
		b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		if err != nil || len(b) != 16 {
			return fmt.Errorf("%q is no UUID", s)
		}
		out.PutBytes(b)
	case batch.Date, batch.DateTime, batch.Timestamp:
		v, err := parseCivil(c.Type, s)
		if err != nil {
			return err
		}
		out.PutInt(v)
	case batch.Time:
		v, err := parseClock(s)
		if err != nil {
			return err
		}
		out.PutInt(v)
	case batch.TimeTZ, batch.Interval:
		b, err := parseParts(c.Type, s)
		if err != nil {
			return err
		}
		out.PutBytes(b)
	default:
		if classOf(c) != asText {
			return fmt.Errorf("the text %q in a column of type %s", s, c.Type)
		}
		out.PutString(s)
	}
	return nil
}

// parseClock reads [-]H…:MM:SS[.f…] as microseconds.
func parseClock(s string) (int64, error) {
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

func parseCivil(t batch.Type, s string) (int64, error) {
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
	us, err := parseClock(clock)
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

// parseParts reads an interval or a time with zone.
func parseParts(t batch.Type, s string) ([]byte, error) {
	if t == batch.Interval {
		f := strings.Fields(s)
		if len(f) != 5 || f[1] != "mons" || f[3] != "days" {
			return nil, fmt.Errorf("%q is no interval", s)
		}
		months, err1 := strconv.ParseInt(f[0], 10, 32)
		days, err2 := strconv.ParseInt(f[2], 10, 32)
		us, err3 := parseClock(f[4])
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
	us, err := parseClock(s[:at])
	if err != nil {
		return nil, err
	}
	zone := s[at+1:]
	if strings.Count(zone, ":") == 1 {
		zone += ":00"
	}
	off, err := parseClock(zone)
	if err != nil {
		return nil, err
	}
	off /= 1e6
	if s[at] == '-' {
		off = -off
	}
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(us)), uint32(int32(off))), nil
}
