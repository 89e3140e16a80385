package reader

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// sharers are readers of several tasks of one worker.
type sharers struct {
	t *testing.T
	s *stack.Server
	p []*puller
}

func newSharers(t *testing.T, s *stack.Server, cfg Config, first, n int) *sharers {
	t.Helper()
	cfg.Share = true
	g := &sharers{t: t, s: s}
	for i := range n {
		i += first
		r, err := New(sdk.Env{Log: slog.New(slog.NewTextHandler(t.Output(), nil)).With("reader", i)}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close(context.Background()) })
		p := &puller{tb: t, r: r, out: batch.NewBuilder(blockLimits), reg: batch.NewRegistry(), model: newModel(t), state: map[string]batch.StateItem{}}
		if err := r.Open(t.Context(), sdk.Execution{Task: fmt.Sprintf("%s-%d", t.Name(), i)}, nil, nil); err != nil {
			t.Fatal(err)
		}
		g.p = append(g.p, p)
	}
	return g
}

// lines asks the server for one column.
func (g *sharers) lines(sql string) []string {
	return strings.Fields(g.s.SQL(sql))[1:] // without its name
}

// dumps is how many dump connections the server has.
func (g *sharers) dumps() int {
	g.t.Helper()
	n := strings.Count(g.s.SQL("SHOW PROCESSLIST;"), "Binlog Dump")
	return n
}

// until lets the readers read side by side until the condition holds.
func (g *sharers) until(what string, cond func() bool, on ...*puller) {
	g.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			state := ""
			for i, p := range on {
				state += fmt.Sprintf("; %d joined %t, %d changes, %v", i, p.r.live.sharing.joined, p.changes, p.err)
			}
			g.t.Fatalf("%s: not within a minute; %d dump connections%s", what, g.dumps(), state)
		}
		var group sync.WaitGroup
		for _, p := range on {
			group.Go(func() {
				// What is idle says so each second.
				for n := p.changes; p.next(10*time.Second) && p.changes > n; n = p.changes {
				}
			})
		}
		group.Wait()
		for _, p := range on {
			if p.err != nil {
				g.t.Fatalf("%s: %v", what, p.err)
			}
		}
	}
}

// one waits until the readers take from one connection.
func (g *sharers) one(on ...*puller) {
	g.t.Helper()
	looked := time.Now()
	g.until("one dump connection", func() bool {
		for _, p := range on {
			if !p.r.live.sharing.joined {
				return false
			}
		}
		if time.Since(looked) < 200*time.Millisecond {
			return false
		}
		looked = time.Now()
		return g.dumps() == 1
	}, on...)
}

// all waits until each reader has as many changes, and compares what they hold.
func (g *sharers) all(rows int, on ...*puller) {
	g.t.Helper()
	g.until(fmt.Sprintf("%d rows", rows), func() bool {
		return !slices.ContainsFunc(on, func(p *puller) bool { return p.model.tables["a.t"] == nil || len(p.model.tables["a.t"].rows) < rows })
	}, on...)
	want := g.lines("SELECT CONCAT(id, '|', n, '|', SHA2(v, 256)) AS row_ FROM a.t;")
	slices.Sort(want)
	for i, p := range on {
		var got []string
		for _, r := range p.rows("a.t") {
			f := strings.SplitN(r, "|", 3)
			got = append(got, f[0]+"|"+f[1]+"|"+fmt.Sprintf("%x", sha256.Sum256([]byte(f[2]))))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			g.t.Fatalf("reader %d holds %d rows, other ones than the server's %d", i, len(got), len(want))
		}
		if p.changes != on[0].changes {
			g.t.Errorf("reader %d: %d changes, the first has %d", i, p.changes, on[0].changes)
		}
	}
}

// TestShare has three tasks take the log of a server from one connection, while one
// is stopped, events are larger than the relay holds, the relay's task ends, and the
// server is started again.
func TestShare(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			if f.name == "mysql-files" && !full {
				t.Skip("optional: DATALINK_FULL=1 runs it")
			}
			s := stack.Start(t, f.kind, append(f.options, "--max-allowed-packet=64M")...)
			s.SQL("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, n INT, v LONGTEXT);")
			cfg := liveConfig("latest", s.Addr())
			cfg.Heartbeat = 300 * time.Millisecond
			g := newSharers(t, s, cfg, 0, 3)
			rows := 0
			insert := func(n, size int) {
				var q strings.Builder
				for range n {
					fmt.Fprintf(&q, "INSERT INTO a.t VALUES (%d, 0, REPEAT('%c', %d));", rows, 'a'+rows%26, size)
					rows++
				}
				s.SQL(q.String())
			}
			insert(5, 10)
			g.all(rows, g.p...)
			g.one(g.p...)
			// Of one connection, small and many, over the end of a file.
			insert(200, 100)
			s.SQL("UPDATE a.t SET n = n + 1; FLUSH BINARY LOGS; UPDATE a.t SET n = n + 1 WHERE id < 50;")
			insert(6, 2<<20)
			g.all(rows, g.p...)
			g.one(g.p...)

			// From a place that the relay has left behind it.
			late := newSharers(t, s, cfg, 3, 1).p[0]
			late.r.live.sharing.next = time.Now().Add(time.Hour)
			g.until("a reader at the end", late.r.caughtUp, late)
			from := rows
			insert(20, 10)
			g.all(rows, g.p...)
			if err := late.r.join(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.until("the rows since then", func() bool { return late.changes >= rows-from }, late)
			if got := len(late.rows("a.t")); got != rows-from {
				t.Errorf("%d rows since it was left, want %d", got, rows-from)
			}
			if err := late.r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}

			// One that does not read holds up nobody, and gets all in the end.
			i := slices.IndexFunc(g.p, func(p *puller) bool { return p.r.live.sharing.relay == nil })
			stopped, others := g.p[i], slices.Delete(slices.Clone(g.p), i, i+1)
			insert(26, 1<<20)
			begun := time.Now()
			g.all(rows, others...)
			if d := time.Since(begun); d > 20*time.Second {
				t.Errorf("the others took %s while one was stopped", d)
			}
			insert(3, 10)
			g.all(rows, g.p...)
			g.one(g.p...)
			if !stopped.r.live.sharing.since.After(begun) {
				t.Errorf("the reader that was 26 MiB behind was not cut off")
			}

			// An event that the relay does not hold.
			insert(1, 20_000_000)
			insert(3, 10)
			g.all(rows, g.p...)
			g.one(g.p...)

			// The relay's task ends; another becomes the relay.
			i = slices.IndexFunc(g.p, func(p *puller) bool { return p.r.live.sharing.relay != nil })
			if err := g.p[i].r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.p = slices.Delete(g.p, i, i+1)
			insert(3, 10)
			g.all(rows, g.p...)
			g.one(g.p...)

			s.Restart()
			insert(3, 10)
			g.all(rows, g.p...)
			g.one(g.p...)
		})
	}
}
