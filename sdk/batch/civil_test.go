package batch

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestCivilAgainstTime compares both directions with package time, over the years
// that both have.
func TestCivilAgainstTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	micros := []int64{0, -1, 1, 951782400e6, -62135596800e6, 253402300799999999, -86400e6, 4107542400e6 - 1, 6311433599999999999, -6311433599999999999}
	for range 20000 {
		micros = append(micros, r.Int64N(4e17)-2e17)
	}
	for _, us := range micros {
		w := time.UnixMicro(us).UTC()
		c := CivilFromUnixMicro(us)
		want := Civil{w.Year(), int(w.Month()), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond() / 1000}
		if c != want {
			t.Fatalf("%d: got %+v, want %+v", us, c, want)
		}
		if got := UnpackDateTime(c.Pack()); got != c && c.Year >= -131072 && c.Year <= 131071 {
			t.Fatalf("%+v packed is %+v", c, got)
		}
		if got := c.UnixMicro(); got != us {
			t.Fatalf("%+v is %d, want %d", c, got, us)
		}
	}
}

func TestPackedOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	last := Civil{Year: -131072, Month: 1, Day: 1}
	us := last.UnixMicro()
	for range 5000 {
		us += 1 + r.Int64N(1.5e15)
		c := CivilFromUnixMicro(us)
		if c.Year > 131071 {
			return
		}
		if last.Pack() >= c.Pack() {
			t.Fatalf("%+v packs above %+v", last, c)
		}
		last = c
	}
}

func TestAppendTimes(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{string(AppendDate(nil, PackDate(2026, 2, 31))), "2026-02-31"},
		{string(AppendDate(nil, 0)), "0000-00-00"},
		{string(AppendDate(nil, PackDate(-44, 3, 15))), "-0044-03-15"},
		{string(AppendDate(nil, PackDate(12345, 1, 2))), "12345-01-02"},
		{string(AppendDate(nil, InfinityDate)), "infinity"},
		{string(AppendDate(nil, NegInfDate)), "-infinity"},
		{string(AppendTime(nil, 0, 0)), "00:00:00"},
		{string(AppendTime(nil, -1, 6)), "-00:00:00.000001"},
		{string(AppendTime(nil, -(838*3600+59*60+59)*1e6, 0)), "-838:59:59"},
		{string(AppendTime(nil, 1500000, 3)), "00:00:01.500"},
		{string(AppendTime(nil, 1999999, 0)), "00:00:01"},
		{string(AppendTime(nil, math.MinInt64, 6)), "-2562047788:00:54.775808"},
		{string(AppendDateTime(nil, 0, 0)), "0000-00-00 00:00:00"},
		{string(AppendDateTime(nil, Civil{9999, 12, 31, 23, 59, 59, 999999}.Pack(), 9)), "9999-12-31 23:59:59.999999"},
		{string(AppendDateTime(nil, InfinityDateTime, 6)), "infinity"},
		{string(AppendTimestamp(nil, ZeroTimestamp, 2)), "0000-00-00 00:00:00.00"},
		{string(AppendTimestamp(nil, NegInfTimestamp, 0)), "-infinity"},
		{string(AppendTimestamp(nil, -1, 6)), "1969-12-31 23:59:59.999999"},
		{string(AppendTimestamp(nil, 6311433599999999999, 6)), "201971-05-15 23:59:59.999999"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}
