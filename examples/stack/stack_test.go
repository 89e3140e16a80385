package stack

import (
	"strings"
	"testing"
)

func TestServerKeepsItsDataOverAKill(t *testing.T) {
	s := Start(t, "mariadb")
	s.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY); INSERT INTO a.t VALUES (7);")
	port := s.Port
	s.Kill()
	s.Restart()
	if got := strings.TrimSpace(s.SQL("SELECT id FROM a.t", "-N")); got != "7" || s.Port != port {
		t.Errorf("got row %q on port %d, want 7 on %d", got, s.Port, port)
	}
}
