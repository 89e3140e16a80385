package clustertest

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// cutter stands between a worker and all ZooKeeper servers.
type cutter struct {
	cut   atomic.Bool // both ways are dropped in silence
	addrs []string

	mu    sync.Mutex
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// cutOff returns the URL by which a worker reaches the servers through it.
func cutOff(t testing.TB, url string) (*cutter, string) {
	t.Helper()
	c := &cutter{conns: map[net.Conn]bool{}}
	var listeners []net.Listener
	rest := strings.TrimPrefix(url, "zookeeper://")
	hosts, path, _ := strings.Cut(rest, "/")
	for target := range strings.SplitSeq(hosts, ",") {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.addrs = append(c.addrs, l.Addr().String())
		c.wg.Go(func() { c.accept(l, target) })
		listeners = append(listeners, l)
	}
	t.Cleanup(func() {
		for _, l := range listeners {
			l.Close()
		}
		c.drop()
		c.wg.Wait()
	})
	return c, "zookeeper://" + strings.Join(c.addrs, ",") + "/" + path
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
	defer to.Close()
	defer from.Close()
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

// heal lets everything pass again; what was connected meanwhile is not of use.
func (c *cutter) heal() {
	c.cut.Store(false)
	c.drop()
}

func (c *cutter) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for x := range c.conns {
		x.Close()
	}
	clear(c.conns)
}
