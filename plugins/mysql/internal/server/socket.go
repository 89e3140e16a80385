package server

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// ErrWouldBlock is returned by reads under NoWait where nothing has arrived. It is
// temporary: what was read before stays good, also under TLS.
var ErrWouldBlock error = wouldBlock{}

type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing has arrived" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// socket is the connection to the server with reads that do not wait.
type socket struct {
	net.Conn
	raw    syscall.RawConn
	nowait bool
	last   time.Time // when bytes arrived
}

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c, last: time.Now()}
	if sc, ok := c.(syscall.Conn); ok {
		s.raw, _ = sc.SyscallConn()
	}
	return s
}

// Read tries without waiting first: bytes that are there are taken even after a
// deadline.
func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if s.raw != nil {
		n, err := s.try(p)
		if n > 0 || err != nil || s.nowait {
			if n == 0 && err == nil {
				err = ErrWouldBlock
			}
			return n, err
		}
	}
	n, err := s.Conn.Read(p)
	if n > 0 {
		s.last = time.Now()
	}
	return n, err
}

// try returns 0 and nil where a read would wait.
func (s *socket) try(p []byte) (n int, err error) {
	var errno error
	err = s.raw.Read(func(fd uintptr) bool {
		for {
			n, errno = syscall.Read(int(fd), p)
			if errno != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, nil // the deadline is past; the waiting read says so
	case err != nil:
		return 0, err
	case errno == syscall.EAGAIN:
		return 0, nil
	case errno != nil:
		return 0, os.NewSyscallError("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	s.last = time.Now()
	return n, nil
}
