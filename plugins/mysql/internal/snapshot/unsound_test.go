package snapshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
)

// TestUnsoundEnds takes snapshots with ends that are not sound: each of them must
// bring about rows that are older than what the stream had brought, or newer.
// With sound ends none does.
func TestUnsoundEnds(t *testing.T) {
	for _, kind := range []string{"mysql", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			var options []string
			if kind == "mysql" { // the log is sent long before the engine commits
				options = []string{"--sync-binlog=2", "--binlog-group-commit-sync-delay=20000"}
			}
			srv := stack.Start(t, kind, options...)
			srv.SQL(`CREATE DATABASE s; CREATE TABLE s.hot (id INT PRIMARY KEY, pad VARCHAR(20), ver INT NOT NULL);`)
			fill(srv, "INSERT INTO s.hot %s SELECT i, 'x', 0 FROM n;", 40)
			s := newStream(t, srv) // while the server is quiet: its set of GTIDs is that of its place
			stop := load(t, srv, 4, func(r *rand.Rand) []string {
				return []string{fmt.Sprintf("UPDATE s.hot SET ver = ver + 1 WHERE id = %d", 1+r.IntN(40))}
			})
			defer stop()
			for _, c := range []struct {
				name   string
				on     string
				sw     Switches
				unsafe bool
			}{
				{"sound", kind, Switches{}, false},
				{"keys that changed are kept", kind, Switches{KeepChange: true}, true},
				{"no wait", "mysql", Switches{NoWait: true}, true},
			} {
				if c.on != kind {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					wrong, tries := 0, 0
					for until := time.Now().Add(20 * time.Second); time.Now().Before(until) && tries < 60 && (wrong == 0 || !c.unsafe); tries++ {
						if !c.unsafe && tries >= 8 {
							break
						}
						s.w = New(Config{Step: s.w0(), Options: Options{ChunkRows: 10, Parallel: 1, StatementTimeout: time.Minute}, All: true, Switches: c.sw}, s, nil)
						s.w.Start(t.Context())
						s.model.back, s.model.ahead = nil, 0
						ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
						err := s.run(ctx, func() bool { return !s.w.Active() })
						if err == nil {
							s.catchUp(ctx)
						}
						cancel()
						s.w.Close()
						if err != nil {
							t.Fatalf("%v\n%s", err, s.w.dump())
						}
						wrong += len(s.model.back) + s.model.ahead
						if len(s.model.back) > 0 {
							t.Log(s.model.back[0])
						}
					}
					t.Logf("%d rows wrong in %d snapshots", wrong, tries)
					if c.unsafe != (wrong > 0) {
						t.Errorf("%d rows in the wrong place in %d snapshots", wrong, tries)
					}
				})
			}
		})
	}
}

// strict compares a changed row with what the target holds: the versions of a row
// follow one another without a gap.
func (m *model) strict(name, key, before string) {
	if !strings.HasPrefix(name, "s.hot") {
		return
	}
	if old, ok := m.tables[name][key]; ok && version(before) < version(old) {
		m.ahead++
	}
}
