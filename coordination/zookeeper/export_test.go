package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

func (s *Store) find(id string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.sessions {
		if x.id == id {
			return x
		}
	}
	return nil
}

// Expire ends a session at the servers, as its time-out would.
func (s *Store) Expire(ctx context.Context, id string) error {
	x := s.find(id)
	if x == nil {
		return fmt.Errorf("no session %s", id)
	}
	x.link.mu.Lock()
	session, passwd := x.link.id, x.link.passwd
	x.link.mu.Unlock()
	var err error
	for range 100 { // until a server says that it is gone: its own client takes it back meanwhile
		for _, addr := range s.cfg.Servers {
			var gone bool
			if gone, err = closeSession(ctx, addr, session, passwd); gone {
				break
			}
		}
		if err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.sessions, x)
	s.mu.Unlock()
	return nil
}

// closeSession takes the session over and closes it, and reports whether it was gone.
func closeSession(ctx context.Context, addr string, session int64, passwd []byte) (bool, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	be := binary.BigEndian
	q := make([]byte, 4, 64)
	q = be.AppendUint32(q, 0)
	q = be.AppendUint64(q, 0)
	q = be.AppendUint32(q, 4000)
	q = be.AppendUint64(q, uint64(session))
	q = be.AppendUint32(q, uint32(len(passwd)))
	q = append(q, passwd...)
	be.PutUint32(q, uint32(len(q)-4))
	answer := func() ([]byte, error) {
		if _, err := c.Write(q); err != nil {
			return nil, err
		}
		var n [4]byte
		if _, err := io.ReadFull(c, n[:]); err != nil {
			return nil, err
		}
		data := make([]byte, be.Uint32(n[:]))
		_, err := io.ReadFull(c, data)
		return data, err
	}
	data, err := answer()
	if err != nil {
		return false, err
	}
	if be.Uint64(data[8:]) == 0 {
		return true, nil
	}
	q = be.AppendUint32(q[:0], 8)
	q = be.AppendUint32(q, 1)
	minus11 := int32(-11) // closeSession
	q = be.AppendUint32(q, uint32(minus11))
	_, err = answer()
	if err == nil {
		err = errors.New("closed, not yet seen to be gone")
	}
	return false, err
}

// Abandon leaves the nodes of a session whose process is gone.
func (s *Store) Abandon(id string) {
	x := s.find(id)
	x.link.mu.Lock()
	w := x.link.wire
	x.link.ended, x.link.up = errClosed, false
	close(x.link.over)
	x.link.mu.Unlock()
	w.Close()
	s.mu.Lock()
	delete(s.sessions, x)
	s.mu.Unlock()
}

// Connected reports whether the session has a connection just now.
func (s *Store) Connected(id string) bool {
	x := s.find(id)
	if x == nil {
		return false
	}
	x.link.mu.Lock()
	defer x.link.mu.Unlock()
	return x.link.up
}
