//go:build !linux

package mysql

import (
	"syscall"
	"time"
)

func control(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
