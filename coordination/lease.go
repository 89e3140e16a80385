package coordination

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Lease is how long a session is certain to live.
type Lease struct {
	// Sent is when the last answered request was sent, on CLOCK_BOOTTIME. The
	// answer's arrival is no measure: the store may have counted from before.
	Sent time.Duration
	// Timeout is the negotiated one. 0 = the session ends only with its process,
	// since nobody else can open the store meanwhile.
	Timeout time.Duration
}

// Deadline is the time on CLOCK_BOOTTIME from which the session may have ended;
// 0 = none.
func (l Lease) Deadline() time.Duration {
	if l.Timeout == 0 {
		return 0
	}
	return l.Sent + l.Timeout
}

// Clock is the two clocks that a lease is judged by.
type Clock interface {
	// Boot is CLOCK_BOOTTIME: it never jumps and runs through suspends.
	Boot() time.Duration
	// Now is the wall clock.
	Now() time.Time
}

// System is the machine's clock.
type System struct{}

// Boot reads CLOCK_BOOTTIME (clock_gettime(2)).
func (System) Boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(fmt.Sprintf("clock_gettime(CLOCK_BOOTTIME): %v: self-fencing needs it", err))
	}
	return time.Duration(ts.Nano())
}

// Now reads the wall clock.
func (System) Now() time.Time { return time.Now() }
