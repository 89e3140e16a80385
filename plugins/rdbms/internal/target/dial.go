package target

import (
	"context"
	"net"
	"time"
)

// Dial opens a connection.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Dialer opens TCP connections whose peer is given up when it shows no sign of
// life for the time-out: neither a statement nor a lock is waited for at a server
// that is gone.
func Dialer(timeout time.Duration) Dial {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: timeout / 3, Interval: timeout / 6, Count: 4},
		Control:         control(timeout),
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return d.DialContext(ctx, network, addr)
	}
}
