package target

import (
	"fmt"
	"log/slog"
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats counts what a writer does. All of it is safe for concurrent use; nil
// counts nothing.
type Stats struct {
	Transactions atomic.Uint64 // committed
	Rows         atomic.Uint64 // changes in them
	Bytes        atomic.Uint64 // of their images
	Statements   atomic.Uint64 // sent, those of the fence not among them
	Retries      atomic.Uint64 // transactions that ended with a fault that is tried again
	Deadlocks    atomic.Uint64 // of those, by deadlock or lock time-out
	Sessions     atomic.Uint64 // opened
	Replaced     atomic.Uint64 // values replaced by the policy onUnfit
	Skipped      atomic.Uint64 // changes left out by skipKeys
	Latency      Histogram     // of a transaction, microseconds
	Sizes        Histogram     // rows of a transaction
}

// Histogram counts values by their power of two.
type Histogram struct{ buckets [40]atomic.Uint64 }

// Add counts a value.
func (h *Histogram) Add(v uint64) { h.buckets[min(bits.Len64(v), len(h.buckets)-1)].Add(1) }

// Quantile returns an upper bound of the q-quantile, off by a factor of two at
// most; 0 where nothing was counted.
func (h *Histogram) Quantile(q float64) uint64 {
	var all uint64
	var n [len(h.buckets)]uint64
	for i := range h.buckets {
		n[i] = h.buckets[i].Load()
		all += n[i]
	}
	want, sum := uint64(q*float64(all)), uint64(0)
	for i, v := range n {
		if sum += v; v > 0 && sum > want || sum == all && sum > 0 {
			return 1<<i - 1
		}
	}
	return 0
}

// LogValue makes the counters one group of a log line.
func (s *Stats) LogValue() slog.Value {
	us := func(q float64) string { return fmt.Sprint(time.Duration(s.Latency.Quantile(q)) * time.Microsecond) }
	return slog.GroupValue(
		slog.Uint64("transactions", s.Transactions.Load()), slog.Uint64("rows", s.Rows.Load()), slog.Uint64("bytes", s.Bytes.Load()),
		slog.Uint64("statements", s.Statements.Load()), slog.Uint64("retries", s.Retries.Load()), slog.Uint64("deadlocks", s.Deadlocks.Load()),
		slog.Uint64("sessions", s.Sessions.Load()), slog.Uint64("replaced", s.Replaced.Load()), slog.Uint64("skipped", s.Skipped.Load()),
		slog.String("latencyP50", us(.5)), slog.String("latencyP99", us(.99)), slog.Uint64("rowsP50", s.Sizes.Quantile(.5)), slog.Uint64("rowsP99", s.Sizes.Quantile(.99)),
	)
}
