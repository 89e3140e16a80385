package mysql

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
)

func init() { suite["a proxy that pools transactions"] = poolingProxy }

// pooled is a client's connection that a proxy has logged in by a session of its
// own, and whose commands it gives to a session that others use too.
type pooled struct {
	net.Conn
	shared net.Conn
	writes int
}

const comQuit = 1

func (p *pooled) Write(b []byte) (int, error) {
	p.writes++
	switch {
	case p.writes == 1: // the login
		return p.Conn.Write(b)
	case len(b) == 5 && b[4] == comQuit:
		return len(b), nil
	}
	return p.shared.Write(b)
}

func (p *pooled) Read(b []byte) (int, error) {
	if p.writes <= 1 {
		return p.Conn.Read(b)
	}
	return p.shared.Read(b)
}

// poolingProxy: a lock guards nothing where another client gets the same session.
func poolingProxy(t *testing.T, s *testServer) {
	db := s.database(t)
	var first net.Conn
	direct := target.Dialer(30e9)
	w := s.writer(t, db, func(c *Config) {
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := direct(ctx, network, addr)
			switch {
			case err != nil:
				return nil, err
			case first == nil:
				first = conn
				return conn, nil
			}
			return &pooled{Conn: conn, shared: first}, nil
		}
	})
	if got := findings(t, w); !strings.Contains(got, "error: two connections are one session") {
		t.Errorf("check:\n%s", got)
	}
	first = nil
	if _, err := w.Claim(bg, execution("a", 1)); !errors.Is(err, &sdk.Fault{Code: sdk.CodeRefused}) {
		t.Errorf("claim: got %v, want %s", err, sdk.CodeRefused)
	}
	expect(t, s, db, "SELECT COUNT(*) FROM datalink_progress", "0")
}
