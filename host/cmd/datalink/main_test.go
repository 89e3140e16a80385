package main

import (
	"syscall"
	"testing"
	"time"
)

// The same signal sent twice, to the process and to its group, is one request: the
// second would otherwise end this test binary.
func TestRepeatedSignal(t *testing.T) {
	ctx, stop := notify()
	defer stop()
	for range 3 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond) // what happens to the next one must not depend on a race
	}
}
