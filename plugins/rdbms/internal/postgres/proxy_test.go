package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// proxy passes bytes on between the writer and the server. Cut, where it is set,
// is asked of each piece that the writer sends: 'p' = pass, 'd' = drop it and the
// connection, 'a' = pass it and drop the connection before any answer.
type proxy struct {
	l   net.Listener
	to  string
	mu  sync.Mutex
	cut func(piece []byte) byte
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{l: l, to: to}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) set(cut func([]byte) byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	var mute sync.Mutex
	muted := false
	go func() {
		defer c.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := s.Read(buf)
			mute.Lock()
			if muted {
				// The server has answered: only now is the connection dropped.
				mute.Unlock()
				return
			}
			if n > 0 {
				_, _ = c.Write(buf[:n])
			}
			mute.Unlock()
			if err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			p.mu.Lock()
			verdict := byte('p')
			if p.cut != nil {
				verdict = p.cut(buf[:n])
			}
			p.mu.Unlock()
			switch verdict {
			case 'd':
				return
			case 'a':
				mute.Lock()
				muted = true
				mute.Unlock()
			}
			if _, err := s.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// atCommit lets the next COMMIT meet its fate.
func atCommit(verdict byte) func([]byte) byte {
	done := false
	return func(piece []byte) byte {
		if done || !bytes.Contains(piece, []byte("COMMIT\x00")) {
			return 'p'
		}
		done = true
		return verdict
	}
}

// pooler is a proxy that gives each transaction of a client any free session of
// the server, as PgBouncer does with pool_mode = transaction.
type pooler struct {
	t    testing.TB
	url  string
	l    net.Listener
	mu   sync.Mutex
	free []net.Conn
}

func newPooler(t testing.TB, url string) *pooler {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &pooler{t: t, url: url, l: l}
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range p.free {
			c.Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *pooler) take() (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		return c, nil
	}
	c, err := pgconn.Connect(context.Background(), p.url)
	if err != nil {
		return nil, err
	}
	h, err := c.Hijack()
	if err != nil {
		return nil, err
	}
	return h.Conn, nil
}

func message(kind byte, body []byte) []byte {
	out := append([]byte{kind}, binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))...)
	return append(out, body...)
}

func readMessage(r io.Reader) (kind byte, raw []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	_, err = io.ReadFull(r, body)
	return head[0], append(head, body...), err
}

func (p *pooler) serve(c net.Conn) {
	defer c.Close()
	size := make([]byte, 4)
	if _, err := io.ReadFull(c, size); err != nil {
		return
	}
	if _, err := io.ReadFull(c, make([]byte, binary.BigEndian.Uint32(size)-4)); err != nil {
		return
	}
	hello := message('R', []byte{0, 0, 0, 0})
	for _, kv := range []string{"server_version\x0015.0\x00", "client_encoding\x00UTF8\x00", "standard_conforming_strings\x00on\x00", "in_hot_standby\x00off\x00", "default_transaction_read_only\x00off\x00"} {
		hello = append(hello, message('S', []byte(kv))...)
	}
	hello = append(hello, message('K', []byte{0, 1, 2, 3, 4, 5, 6, 7})...)
	if _, err := c.Write(append(hello, message('Z', []byte{'I'})...)); err != nil {
		return
	}
	var s net.Conn
	for {
		kind, raw, err := readMessage(c)
		if err != nil || kind == 'X' {
			return
		}
		if s == nil {
			if s, err = p.take(); err != nil {
				return
			}
		}
		if _, err := s.Write(raw); err != nil {
			return
		}
		if kind != 'Q' && kind != 'S' {
			continue
		}
		for {
			kind, raw, err := readMessage(s)
			if err != nil {
				return
			}
			if _, err := c.Write(raw); err != nil {
				return
			}
			if kind == 'Z' {
				if raw[5] == 'I' {
					p.mu.Lock()
					p.free = append(p.free, s)
					p.mu.Unlock()
					s = nil
				}
				break
			}
		}
	}
}
