package stack

import (
	"strings"
	"testing"
)

func TestServerKeepsItsDataOverAKill(t *testing.T) {
	for _, c := range []struct{ kind, database, option string }{
		{"mariadb", "CREATE DATABASE a;", "-N"},
		{"postgres", "CREATE SCHEMA a;", "-At"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			s := Start(t, c.kind)
			s.SQL(c.database + " CREATE TABLE a.t (id INT PRIMARY KEY); INSERT INTO a.t VALUES (7);")
			port := s.Port
			s.Kill()
			s.Restart()
			if got := strings.TrimSpace(s.SQL("SELECT id FROM a.t", c.option)); got != "7" || s.Port != port {
				t.Errorf("got row %q on port %d, want 7 on %d", got, s.Port, port)
			}
		})
	}
}
