package zookeeper_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a client and one server.
type proxy struct {
	t      testing.TB
	l      net.Listener
	target string
	// Both ways are dropped in silence while cut, answers while mute.
	cut, mute atomic.Bool

	mu    sync.Mutex
	pairs map[net.Conn]net.Conn
	wg    sync.WaitGroup
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, l: l, target: target, pairs: map[net.Conn]net.Conn{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.drop()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", p.target)
		if err != nil {
			c.Close()
			continue
		}
		p.mu.Lock()
		p.pairs[c] = s
		p.mu.Unlock()
		p.wg.Go(func() { p.pump(s, c, func() bool { return p.cut.Load() }) })
		p.wg.Go(func() { p.pump(c, s, func() bool { return p.cut.Load() || p.mute.Load() }) })
	}
}

func (p *proxy) pump(to, from net.Conn, silent func() bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !silent() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			_ = err == io.EOF
			return
		}
	}
}

// drop breaks all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, s := range p.pairs {
		c.Close()
		s.Close()
		delete(p.pairs, c)
	}
}
