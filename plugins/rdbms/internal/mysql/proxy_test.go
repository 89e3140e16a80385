package mysql

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands between a writer and its server. It can keep what the writer
// sends, and cut answers off.
type proxy struct {
	target string
	l      net.Listener

	mu       sync.Mutex
	cond     *sync.Cond
	hold     bool // keep what comes from the client
	deaf     bool // keep what comes from the server
	held     int  // bytes kept so far
	closed   bool
	sessions []net.Conn
}

func newProxy(t testing.TB, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: target, l: l}
	p.cond = sync.NewCond(&p.mu)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", target)
			if err != nil {
				c.Close()
				continue
			}
			p.mu.Lock()
			p.sessions = append(p.sessions, c, s)
			p.mu.Unlock()
			all.Go(func() { p.pipe(s, c, &p.hold) })
			all.Go(func() { p.pipe(c, s, &p.deaf) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.closed = true
		p.cond.Broadcast()
		p.mu.Unlock()
		p.cut()
		all.Wait()
	})
	return p
}

// pipe copies; while stop is set it keeps what it has read.
func (p *proxy) pipe(to, from net.Conn, stop *bool) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		if *stop {
			p.held += n
			p.cond.Broadcast()
		}
		for *stop && !p.closed {
			p.cond.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				io.Copy(io.Discard, from) //nolint:errcheck
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) set(v *bool, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*v, p.held = on, 0
	p.cond.Broadcast()
}

// awaitHeld waits until bytes are kept.
func (p *proxy) awaitHeld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held == 0 && !p.closed {
		p.cond.Wait()
	}
}

// cut ends all connections that there are; what is kept is lost.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.sessions {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		c.Close()
	}
	p.sessions, p.hold, p.deaf = nil, false, false
	p.cond.Broadcast()
}

func (p *proxy) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, p.l.Addr().String())
}
