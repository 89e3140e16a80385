package snapshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
)

// load changes rows of the tables from several connections until the returned
// function is called.
func load(t *testing.T, srv *stack.Server, sessions int, statement func(r *rand.Rand) []string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	for i := range sessions {
		g.Go(func() {
			c, err := dialTest(ctx, srv)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			r := rand.New(rand.NewPCG(uint64(i), 7))
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				<-pace.C
				for _, sql := range statement(r) {
					if _, err := c.Exec(context.Background(), sql); err != nil && !strings.Contains(err.Error(), "1213") && !strings.Contains(err.Error(), "1062") && !strings.Contains(err.Error(), "1205") {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	return func() { cancel(); g.Wait() }
}

// fill puts n rows into a table by doubling.
func fill(srv *stack.Server, insert string, n int) {
	var b strings.Builder
	b.WriteString("SET SESSION cte_max_recursion_depth = 10000000;\n")
	if srv.Kind == "mariadb" {
		b.Reset()
		b.WriteString("SET SESSION max_recursive_iterations = 10000000;\n")
	}
	fmt.Fprintf(&b, insert, fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)", n))
	srv.SQL(b.String())
}

const concurrentTables = `CREATE DATABASE s CHARACTER SET utf8mb4;
CREATE TABLE s.a (id INT PRIMARY KEY, v INT, ver INT NOT NULL);
CREATE TABLE s.b (k VARCHAR(20) COLLATE utf8mb4_unicode_ci, n BIGINT UNSIGNED, x VARCHAR(50), ver INT NOT NULL, PRIMARY KEY (k, n));
CREATE TABLE s.nokey (a INT, b VARCHAR(20), ver INT NOT NULL);
`

func prepareConcurrent(srv *stack.Server, rows int) {
	srv.SQL(concurrentTables)
	fill(srv, "INSERT INTO s.a %[1]s SELECT i, i, 0 FROM n; INSERT INTO s.b %[1]s SELECT ELT(1 + i %% 3, 'a', 'Ä', 'b'), i, 'x', 0 FROM n;"+
		"INSERT INTO s.nokey %[1]s SELECT i, 'x', 0 FROM n WHERE i %% 10 = 0;", rows)
}

func changeConcurrent(rows int, nokey bool) func(r *rand.Rand) []string {
	return func(r *rand.Rand) []string {
		id := 1 + r.IntN(rows)
		k := []string{"a", "Ä", "b"}[id%3]
		n := 9
		if nokey {
			n = 10
		}
		switch r.IntN(n) {
		case 0:
			return []string{fmt.Sprintf("DELETE FROM s.a WHERE id = %d", id)}
		case 1:
			return []string{fmt.Sprintf("INSERT INTO s.a VALUES (%d, %d, 1)", id, id)}
		case 2:
			return []string{fmt.Sprintf("UPDATE s.b SET ver = ver + 1 WHERE k = '%s' AND n = %d", k, id)}
		case 3:
			return []string{fmt.Sprintf("DELETE FROM s.b WHERE k = '%s' AND n = %d", k, id), fmt.Sprintf("INSERT INTO s.b VALUES ('%s', %d, 'n', 1)", strings.ToLower(k), id)}
		case 4:
			return []string{"BEGIN", fmt.Sprintf("UPDATE s.a SET ver = ver + 1, v = %d WHERE id = %d", r.IntN(1000), id), fmt.Sprintf("UPDATE s.b SET x = 'y%d', ver = ver + 1 WHERE k = '%s' AND n = %d", id, k, id), "COMMIT"}
		case 9:
			return []string{"SET SESSION autocommit = 1", fmt.Sprintf("UPDATE s.nokey SET ver = ver + 1, b = 'y%d' WHERE a = %d", r.IntN(100), id/10*10)}
		default:
			return []string{fmt.Sprintf("UPDATE s.a SET ver = ver + 1 WHERE id = %d", id%50+1)}
		}
	}
}

// snapshotUnderLoad takes a snapshot while sessions write, and returns the model
// once the stream has come to the end of the log.
func snapshotUnderLoad(t *testing.T, srv *stack.Server, cfg Config, stop func()) *stream {
	t.Helper()
	s := newStream(t, srv)
	cfg.All = true
	s.w = New(cfg, s, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	s.w.Start(t.Context())
	defer s.w.Close()
	defer func() {
		if t.Failed() {
			t.Log(s.w.dump())
		}
	}()
	if err := s.run(ctx, func() bool { return !s.w.Active() }); err != nil {
		t.Fatal(err)
	}
	stop()
	s.catchUp(ctx)
	return s
}

// catchUp reads to the end of the log.
func (s *stream) catchUp(ctx context.Context) {
	s.t.Helper()
	c, err := dialTest(ctx, s.srv)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	sess := &session{Conn: c, cfg: &Config{}, id: s.here.Server}
	end, _, err := sess.end(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.run(ctx, func() bool { return s.here.reached(end) }); err != nil {
		s.t.Fatal(err)
	}
}

// differ compares the model with what the server's client prints.
func (s *stream) differ(tables map[string]string) []string {
	s.t.Helper()
	var out []string
	for name, columns := range tables {
		want := strings.Split(strings.TrimSpace(s.srv.SQL("SELECT CONCAT_WS('|', "+columns+") FROM s."+name, "-N", "--default-character-set=utf8mb4")), "\n")
		if len(want) == 1 && want[0] == "" {
			want = nil
		}
		slices.Sort(want)
		got := s.model.content("s." + name)
		if !slices.Equal(got, want) {
			n := 0
			for _, g := range got {
				if _, ok := slices.BinarySearch(want, g); !ok {
					if n++; n <= 3 {
						out = append(out, name+": "+g+" is not at the source")
					}
				}
			}
			for _, w := range want {
				if _, ok := slices.BinarySearch(got, w); !ok {
					if n++; n <= 6 {
						out = append(out, name+": "+w+" is missing")
					}
				}
			}
			out = append(out, fmt.Sprintf("%s: %d rows, %d at the source, %d differ", name, len(got), len(want), n))
		}
	}
	return out
}

var concurrentColumns = map[string]string{"a": "id, v, ver", "b": "k, n, x, ver", "nokey": "a, b, ver"}

// TestUnderLoad takes snapshots of tables that eight sessions write to; keys are
// changed, deleted and come back, also under other letters of the collation.
func TestUnderLoad(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		options    []string
	}{
		{"mysql", "mysql", nil},
		{"mysql without GTIDs", "mysql", []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}},
		{"mysql minimal images", "mysql", []string{"--binlog-row-image=MINIMAL"}},
		{"mariadb", "mariadb", nil},
		{"mariadb minimal images", "mariadb", []string{"--binlog-row-image=NOBLOB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := stack.Start(t, c.kind, c.options...)
			const rows = 4000
			prepareConcurrent(srv, rows)
			keyless := !strings.Contains(c.name, "minimal")
			stop := load(t, srv, 3, changeConcurrent(rows, keyless))
			s := snapshotUnderLoad(t, srv, Config{Options: Options{ChunkRows: 500, Parallel: 3, StatementTimeout: time.Minute}, Piece: 16 << 10, Session: 100 * time.Millisecond}, stop)
			t.Logf("%d rows read, %d ranges, %d blocks", s.model.reads, len(s.model.ranges), s.blocks)
			for _, d := range s.differ(concurrentColumns) {
				t.Error(d)
			}
			if len(s.model.back) > 0 {
				t.Errorf("%d rows went back: %s", len(s.model.back), s.model.back[0])
			}
			if s.model.reads < rows {
				t.Errorf("%d rows came by the snapshot", s.model.reads)
			}
		})
	}
}
