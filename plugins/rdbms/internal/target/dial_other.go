//go:build !linux

package target

import (
	"syscall"
	"time"
)

func control(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
