package delivery

import "time"

var started = time.Now()

// monotonic stands in where there is no clock that runs through suspends.
func monotonic() int64 { return time.Since(started).Microseconds() }
