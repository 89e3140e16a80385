package server

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Wait waits until bytes can be read, wake is closed or receives, until passes, or
// ctx ends, which is the only case in which it returns ctx's error. After until it
// returns os.ErrDeadlineExceeded; an ended connection can be read.
func (c *Conn) Wait(ctx context.Context, until time.Time, wake <-chan struct{}) error {
	s := c.sock
	if err := ctx.Err(); err != nil {
		return err
	}
	_ = s.SetReadDeadline(until)
	done, woken := make(chan struct{}), make(chan struct{})
	off := context.AfterFunc(ctx, func() {
		_ = s.SetReadDeadline(time.Unix(1, 0))
		close(done)
	})
	if wake != nil {
		quit := make(chan struct{})
		go func() {
			defer close(woken)
			select {
			case <-wake:
				_ = s.SetReadDeadline(time.Unix(1, 0))
			case <-quit:
			}
		}()
		defer func() {
			close(quit)
			<-woken
			_ = s.SetReadDeadline(time.Time{})
		}()
	}
	err := s.readable()
	if !off() {
		<-done
	}
	_ = s.SetReadDeadline(time.Time{})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(until):
		return nil // woken
	}
	return err
}

// readable waits until a read would not wait.
func (s *socket) readable() error {
	if s.raw == nil {
		return errors.New("the connection cannot be waited for")
	}
	var one [1]byte
	return s.raw.Read(func(fd uintptr) bool {
		for {
			_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if err != syscall.EINTR {
				return err != syscall.EAGAIN
			}
		}
	})
}
