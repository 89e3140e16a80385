package target

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT (tcp(7)): how long sent bytes may stay
// unacknowledged.
const tcpUserTimeout = 18

func control(timeout time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		if network == "unix" {
			return nil
		}
		var err error
		cerr := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(timeout.Milliseconds()))
		})
		if cerr != nil {
			return cerr
		}
		return err
	}
}
