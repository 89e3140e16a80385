package mysql

import (
	"math"

	"github.com/datalink-go/datalink/sdk/batch"
)

// The range of TIMESTAMP: it ends with the signed 32-bit seconds.
const (
	firstTimestamp = 1000000
	lastTimestamp  = math.MaxInt32*1000000 + 999999
)

// maxTime is the largest TIME; MariaDB has fractions of its last second.
const maxTime = (838*3600 + 59*60 + 59) * 1000000

// appendTime appends dates and times, and says why one does not fit.
func (c *column) appendTime(b []byte, v *batch.Value) ([]byte, string) {
	n := v.Int64()
	switch c.source.Type {
	case batch.Date:
		y, m, d := batch.UnpackDate(int32(n))
		if n == int64(batch.NegInfDate) || n == int64(batch.InfinityDate) || y < 0 || y > 9999 {
			return b, "found " + string(batch.AppendDate(nil, int32(n)))
		}
		b = append(b, '\'')
		b = appendDay(b, y, m, d)
		return append(b, '\''), ""
	case batch.Time:
		if n > maxTime || n < -maxTime || c.narrow && !c.holdsFraction(n%1e6) {
			if abs := max(n, -n); n == math.MinInt64 || abs > maxTime+999999 || !c.maxFraction() || c.narrow && !c.holdsFraction(n%1e6) {
				return b, "found " + string(batch.AppendTime(nil, n, 6))
			}
		}
		b = append(b, '\'')
		b = batch.AppendTime(b, n, c.shown())
		return append(b, '\''), ""
	case batch.Timestamp:
		switch n {
		case batch.ZeroTimestamp:
			return append(b, "'0000-00-00 00:00:00'"...), ""
		case batch.NegInfTimestamp, batch.InfinityTimestamp:
			return b, "found " + string(batch.AppendTimestamp(nil, n, 6))
		}
		if c.to.base == "timestamp" && (n < firstTimestamp || n > lastTimestamp) {
			return b, "found " + string(batch.AppendTimestamp(nil, n, 6))
		}
		return c.appendCivil(b, batch.CivilFromUnixMicro(n))
	}
	if n == batch.NegInfDateTime || n == batch.InfinityDateTime {
		return b, "found " + string(batch.AppendDateTime(nil, n, 6))
	}
	return c.appendCivil(b, batch.UnpackDateTime(n))
}

func (c *column) appendCivil(b []byte, t batch.Civil) ([]byte, string) {
	if t.Year < 0 || t.Year > 9999 || c.narrow && !c.holdsFraction(int64(t.Mic)) {
		return b, "found " + string(batch.AppendDateTime(nil, t.Pack(), 6))
	}
	b = append(b, '\'')
	b = appendDay(b, t.Year, t.Month, t.Day)
	b = append(b, ' ', byte('0'+t.Hour/10), byte('0'+t.Hour%10), ':', byte('0'+t.Minute/10), byte('0'+t.Minute%10), ':', byte('0'+t.Second/10), byte('0'+t.Second%10))
	if n := c.shown(); n > 0 && t.Mic > 0 {
		b = append(b, '.')
		for i, div := 0, 100000; i < n; i, div = i+1, div/10 {
			b = append(b, byte('0'+t.Mic/div%10))
		}
	}
	return append(b, '\''), ""
}

func appendDay(b []byte, y, m, d int) []byte {
	return append(b, byte('0'+y/1000), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10), '-', byte('0'+m/10), byte('0'+m%10), '-', byte('0'+d/10), byte('0'+d%10))
}

// shown is the count of fractional digits of the target's column.
func (c *column) shown() int { return min(max(c.to.n, 0), 6) }

// holdsFraction reports whether the target's column has digits for the
// microseconds: it would round them.
func (c *column) holdsFraction(mic int64) bool {
	return mic%[...]int64{1e6, 1e5, 1e4, 1e3, 100, 10, 1}[c.shown()] == 0
}

// maxFraction reports whether the last second of TIME has fractions.
func (c *column) maxFraction() bool { return c.maria }
