package task

import (
	"time"

	"github.com/datalink-go/datalink/coordination"
)

// Guard judges whether a lease is still certain. The zero value with a Margin is
// ready; it is not safe for concurrent use.
type Guard struct {
	Margin time.Duration

	sent   time.Duration
	offset time.Duration // wall clock less CLOCK_BOOTTIME when sent was first seen
	seen   bool
}

// Expired reports that the session may have ended by now, or will within the
// margin. A jump of the wall clock forward against CLOCK_BOOTTIME since the last
// answered request counts as a pause that the latter did not see, such as that of a
// virtual machine that was put back from a snapshot.
func (g *Guard) Expired(l coordination.Lease, c coordination.Clock) bool {
	if l.Timeout == 0 {
		return false
	}
	boot := c.Boot()
	offset := time.Duration(c.Now().Round(0).UnixNano()) - boot
	if !g.seen || l.Sent != g.sent {
		g.seen, g.sent, g.offset = true, l.Sent, offset
	}
	return boot+max(0, offset-g.offset) >= l.Deadline()-g.Margin
}

// Deadline is the time on CLOCK_BOOTTIME, in microseconds, from which an idempotent
// writer must not write; 0 = none.
func Deadline(l coordination.Lease, margin time.Duration) int64 {
	if l.Timeout == 0 {
		return 0
	}
	return (l.Deadline() - margin).Microseconds()
}
