package reader

import (
	"strings"
	"testing"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
)

// TestVersionsOfPrepared commits a prepared transaction after the note of it came
// from a server whose log stands further, or was begun anew since: what drops the
// note must count as newer than the note.
func TestVersionsOfPrepared(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			s := stack.Start(t, kind)
			s.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY);")
			p := pull(t, liveConfig("latest", s.Addr()), nil, nil)
			s.SQL("XA START 'x'; INSERT INTO a.t VALUES (1); XA END 'x'; XA PREPARE 'x';")
			note := ""
			p.until("the note", func() bool {
				for k := range p.state {
					if strings.HasPrefix(k, xaKey) {
						note = k
					}
				}
				return note != ""
			})
			it := p.state[note]
			it.Version += 1 << 50 // of a log that stands further
			p.state[note] = it
			_ = p.r.Close(t.Context())
			again := pull(t, liveConfig("latest", s.Addr()), []sdk.Point{{Position: p.last}}, p.state)
			s.SQL("XA COMMIT 'x';")
			again.until("its row", again.has("a.t", 1))
			if end := again.state[note]; !end.Deleted || end.Version <= it.Version {
				t.Errorf("the note of version %d ends in %+v", it.Version, end)
			}
		})
	}
}
