package stack

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

// Ensemble is several ZooKeeper servers that form one store.
type Ensemble struct {
	Servers []*Server
	tb      testing.TB
}

// StartEnsemble starts n ZooKeeper servers with further lines of zoo.cfg, and waits
// until they have a leader. One server is a store by itself.
func StartEnsemble(tb testing.TB, n int, options ...string) *Ensemble {
	tb.Helper()
	e := &Ensemble{tb: tb}
	if n == 1 {
		e.Servers = []*Server{Start(tb, "zookeeper", options...)}
		return e
	}
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", i+1, freePort(tb), freePort(tb)))
	}
	for i := range n {
		e.Servers = append(e.Servers, Start(tb, "zookeeper", append(append([]string{fmt.Sprintf("myid=%d", i+1)}, members...), options...)...))
	}
	e.Await()
	return e
}

// Addrs returns the client addresses, separated by commas.
func (e *Ensemble) Addrs() string {
	var out []string
	for _, s := range e.Servers {
		out = append(out, s.Addr())
	}
	return strings.Join(out, ",")
}

// Leader returns the server that leads, nil when none does.
func (e *Ensemble) Leader() *Server {
	for _, s := range e.Servers {
		if m := e.mode(s); m == "leader" || m == "standalone" {
			return s
		}
	}
	return nil
}

// Follower returns a server that follows, nil when none does.
func (e *Ensemble) Follower() *Server {
	for _, s := range e.Servers {
		if e.mode(s) == "follower" {
			return s
		}
	}
	return nil
}

// Await waits until there is a leader and every server serves.
func (e *Ensemble) Await() {
	e.tb.Helper()
	until := time.Now().Add(time.Minute)
	for {
		serving := 0
		for _, s := range e.Servers {
			if e.mode(s) != "" {
				serving++
			}
		}
		if serving == len(e.Servers) && e.Leader() != nil {
			return
		}
		if time.Now().After(until) {
			e.tb.Fatalf("%d of %d ZooKeeper servers serve after a minute", serving, len(e.Servers))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// mode is what a server says of itself; "" = it does not serve.
func (e *Ensemble) mode(s *Server) string {
	c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(c, "srvr"); err != nil {
		return ""
	}
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if mode, ok := strings.CutPrefix(lines.Text(), "Mode: "); ok {
			return mode
		}
	}
	return ""
}

// freePort finds a port below the range that the kernel hands out for outgoing
// connections.
func freePort(tb testing.TB) int {
	tb.Helper()
	for range 50 {
		p := 20000 + rand.IntN(12000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p)); err == nil {
			l.Close()
			return p
		}
	}
	tb.Fatal("no free port found")
	return 0
}
