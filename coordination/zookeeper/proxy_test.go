package zookeeper_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between a client and one server.
type proxy struct {
	t      testing.TB
	l      net.Listener
	target string
	// Both ways are dropped in silence while cut, answers while mute.
	cut, mute atomic.Bool

	mu      sync.Mutex
	pairs   map[net.Conn]net.Conn
	onMulti func() // called once, before the next multi is passed on
	wg      sync.WaitGroup
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
		p.wg.Go(func() { p.pump(s, p.look(c), c, func() bool { return p.cut.Load() }) })
		p.wg.Go(func() { p.pump(c, s, s, func() bool { return p.cut.Load() || p.mute.Load() }) })
	}
}

// look passes what a client sends and finds the multis in it: each packet is a
// length, a number and a code; the first one is the connect request.
func (p *proxy) look(c net.Conn) io.Reader {
	r, w := io.Pipe()
	p.wg.Go(func() {
		for first := true; ; first = false {
			head := make([]byte, 4)
			if _, err := io.ReadFull(c, head); err != nil {
				w.CloseWithError(err)
				return
			}
			packet := append(head, make([]byte, binary.BigEndian.Uint32(head))...)
			if _, err := io.ReadFull(c, packet[4:]); err != nil {
				w.CloseWithError(err)
				return
			}
			const multi = 14
			if !first && len(packet) >= 12 && binary.BigEndian.Uint32(packet[8:]) == multi {
				p.mu.Lock()
				f := p.onMulti
				p.onMulti = nil
				p.mu.Unlock()
				if f != nil {
					f()
				}
			}
			if _, err := w.Write(packet); err != nil {
				return
			}
		}
	})
	return r
}

// next sets what happens when the next multi passes.
func (p *proxy) next(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onMulti = f
}

// lose lets the answer of the next multi get lost.
func (p *proxy) lose() {
	p.next(func() {
		p.mute.Store(true)
		time.AfterFunc(50*time.Millisecond, func() {
			p.drop()
			p.mute.Store(false)
		})
	})
}

func (p *proxy) pump(to net.Conn, in io.Reader, from net.Conn, silent func() bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 && !silent() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
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
