package clustertest

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// cutter stands between a worker and servers.
type cutter struct {
	cut atomic.Bool // both ways are dropped in silence

	mu    sync.Mutex
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// cutOff returns the URL by which a worker reaches ZooKeeper through a cutter.
func cutOff(t testing.TB, url string) (*cutter, string) {
	t.Helper()
	hosts, path, _ := strings.Cut(strings.TrimPrefix(url, "zookeeper://"), "/")
	c, addrs := between(t, strings.Split(hosts, ",")...)
	return c, "zookeeper://" + strings.Join(addrs, ",") + "/" + path
}

// between returns a cutter and, for each server, the address that leads through it.
func between(t testing.TB, servers ...string) (*cutter, []string) {
	t.Helper()
	c := &cutter{conns: map[net.Conn]bool{}}
	var listeners []net.Listener
	var addrs []string
	for _, server := range servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, l.Addr().String())
		c.wg.Go(func() { c.accept(l, server) })
		listeners = append(listeners, l)
	}
	t.Cleanup(func() {
		for _, l := range listeners {
			l.Close()
		}
		c.drop()
		c.wg.Wait()
	})
	return c, addrs
}

func (c *cutter) accept(l net.Listener, target string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", target)
		if err != nil {
			in.Close()
			continue
		}
		c.mu.Lock()
		c.conns[in], c.conns[out] = true, true
		c.mu.Unlock()
		c.wg.Go(func() { c.pump(in, out) })
		c.wg.Go(func() { c.pump(out, in) })
	}
}

func (c *cutter) pump(to, from net.Conn) {
	defer c.end(to, from)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !c.cut.Load() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *cutter) end(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range conns {
		x.Close()
		delete(c.conns, x)
	}
}

// heal lets everything pass again; what was connected meanwhile is not of use.
func (c *cutter) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
	c.cut.Store(false)
}

func (c *cutter) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
}

func (c *cutter) close() {
	for x := range c.conns {
		x.Close()
	}
	clear(c.conns)
}
