package reader

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
)

// TestStartSnapshot takes tables as they are while they are written to, stops in
// the middle and goes on; then the stream follows.
func TestStartSnapshot(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			if f.name == "mysql-files" && !full {
				t.Skip("optional: DATALINK_FULL=1 runs it")
			}
			s := stack.Start(t, f.kind, f.options...)
			var b strings.Builder
			b.WriteString("CREATE DATABASE s; CREATE TABLE s.t (id INT PRIMARY KEY, v VARCHAR(30)); CREATE TABLE s.u (a VARCHAR(10), b INT, v INT, PRIMARY KEY (a, b));\n")
			for i := range 30 {
				var t, u []string
				for k := range 100 {
					t = append(t, fmt.Sprintf("(%d,'v%d')", i*100+k, i))
					u = append(u, fmt.Sprintf("('k%d',%d,%d)", k%7, i*100+k, i))
				}
				fmt.Fprintf(&b, "INSERT INTO s.t VALUES %s; INSERT INTO s.u VALUES %s;\n", strings.Join(t, ","), strings.Join(u, ","))
			}
			s.SQL(b.String())
			idle := liveConfig("snapshot", s.Addr())
			idle.Heartbeat *= 100
			q := pull(t, idle, nil, nil)
			q.until("the rows of an idle server, before its first heartbeat", func() bool { return len(q.rows("s.t")) == 3000 })
			_ = q.r.Close(t.Context())
			stop := make(chan struct{})
			var writing sync.WaitGroup
			writing.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					var b strings.Builder
					for i := range 40 {
						at := (n*40 + i) * 37 % 3000
						fmt.Fprintf(&b, "UPDATE s.t SET v = 'w%d' WHERE id = %d; DELETE FROM s.u WHERE b = %d; INSERT INTO s.t VALUES (%d, 'new'); UPDATE s.u SET a = 'moved', v = v + 1 WHERE b = %d;\n", n, at, at, 10000+n*40+i, at+1)
					}
					s.SQL(b.String())
				}
			})
			cfg := liveConfig("snapshot", s.Addr())
			cfg.Snapshot.ChunkRows, cfg.Snapshot.Parallel = 200, 2
			cfg.Heartbeat /= 5
			p := pull(t, cfg, nil, nil)
			p.model.loose = true
			p.until("a part of the rows", func() bool { return len(p.rows("s.t")) > 300 })
			for range 3 { // as a new process, at a position with the state that belongs to it
				m, at, state := p.model, p.last, p.state
				_ = p.r.Close(t.Context())
				p = pull(t, cfg, []sdk.Point{{Position: at}}, state)
				p.model = m
				n := p.changes
				p.until("more rows", func() bool { return p.changes > n+100 })
			}
			close(stop)
			writing.Wait()
			s.SQL("INSERT INTO s.t VALUES (99999, 'end');")
			p.until("the last row", func() bool {
				return slices.Contains(p.rows("s.t"), "99999|end") && !p.r.live.weaver.Active()
			})
			for table, q := range map[string]string{"s.t": "SELECT CONCAT_WS('|', id, v) FROM s.t", "s.u": "SELECT CONCAT_WS('|', a, b, v) FROM s.u"} {
				want := strings.Split(strings.TrimSpace(s.SQL(q, "-N")), "\n")
				slices.Sort(want)
				if got := p.rows(table); !slices.Equal(got, want) {
					t.Errorf("%s: %d rows, want %d", table, len(got), len(want))
					for _, w := range want {
						if !slices.Contains(got, w) {
							t.Errorf("lacks %s", w)
							break
						}
					}
				}
			}
		})
	}
}
