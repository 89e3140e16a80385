package snapshot

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk/batch"
)

// BenchmarkSnapshot reads a table of about 64 MB by a snapshot and by a bare
// SELECT * over as many connections, whose rows are dropped, in turns. The metric
// ratio is the bytes a second of the first against the second; the same bytes are
// read, so that it is that of the times.
func BenchmarkSnapshot(b *testing.B) {
	for _, kind := range []string{"mysql", "mariadb"} {
		b.Run(kind, func(b *testing.B) {
			srv := stack.Start(b, kind, "--innodb-buffer-pool-size=256M")
			const rows = 200_000
			srv.SQL("CREATE DATABASE s; CREATE TABLE s.wide (id BIGINT PRIMARY KEY, a INT, b BIGINT UNSIGNED, c DECIMAL(12,2), d DATETIME(3), e VARCHAR(120), f VARCHAR(60), g DOUBLE, h TIMESTAMP, i VARBINARY(80));")
			fill2(srv, rows)
			const parallel = 4
			var ours, bare time.Duration
			var used uint64
			for b.Loop() {
				bare += selectAll(b, srv, rows, parallel)
				t, cpu := snapshotAll(b, srv, rows, parallel)
				ours, used = ours+t, used+cpu
			}
			b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio")
			b.ReportMetric(float64(rows)*float64(b.N)/ours.Seconds(), "rows/s")
			b.ReportMetric(float64(rows)*float64(b.N)/bare.Seconds(), "bare-rows/s")
			b.ReportMetric(float64(used)/1e6/float64(b.N)/rows*1e6, "cpu-s/Mrow")
		})
	}
}

func fill2(srv *stack.Server, rows int) {
	set := "SET SESSION cte_max_recursion_depth = 10000000;"
	if srv.Kind == "mariadb" {
		set = "SET SESSION max_recursive_iterations = 10000000;"
	}
	srv.SQL(set + fmt.Sprintf("INSERT INTO s.wide WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "+
		"SELECT i, i, i * 1000003, i / 7, '2026-01-02 03:04:05.678', REPEAT(CHAR(97 + i %% 26), 100), CONCAT('name of row ', i), i / 3, '2026-01-02 03:04:05', REPEAT('x', 60) FROM n; ANALYZE TABLE s.wide;", rows))
}

func selectAll(tb testing.TB, srv *stack.Server, rows, parallel int) time.Duration {
	ctx := context.Background()
	var conns []*server.Conn
	for range parallel {
		c, err := dialTest(ctx, srv)
		if err != nil {
			tb.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	began := time.Now()
	var g sync.WaitGroup
	for i, c := range conns {
		g.Go(func() {
			sql := fmt.Sprintf("SELECT * FROM s.wide WHERE id > %d AND id <= %d", i*rows/parallel, (i+1)*rows/parallel)
			if err := c.WriteCommand(3, []byte(sql)); err != nil {
				tb.Error(err)
				return
			}
			for ends := 0; ends < 1; {
				p, err := c.ReadPacket()
				if err != nil || server.AsError(p) != nil {
					tb.Error(err)
					return
				}
				if server.IsEnd(p) && c.Capabilities&server.CapDeprecateEOF != 0 {
					ends++
				}
			}
		})
	}
	g.Wait()
	return time.Since(began)
}

// quiet is a stream in which nothing happens.
type quiet struct {
	srv  *stack.Server
	here Place
}

func (q *quiet) Dial(ctx context.Context) (*server.Conn, error) { return dialTest(ctx, q.srv) }
func (q *quiet) Position(step uint64) []byte                    { return fmt.Appendf(nil, "%s~%d", q.here, step) }
func (q *quiet) Wants(db, _ string) bool                        { return db == "s" }

func snapshotAll(tb testing.TB, srv *stack.Server, rows, parallel int) (time.Duration, uint64) {
	ctx := context.Background()
	q := &quiet{srv: srv}
	sess, err := dial(ctx, q, &Config{Options: Options{StatementTimeout: time.Minute}})
	if err != nil {
		tb.Fatal(err)
	}
	defer sess.Close()
	var executed string
	if q.here, executed, err = sess.end(ctx); err != nil {
		tb.Fatal(err)
	}
	if !sess.MariaDB {
		q.here.GTID = executed
	}
	before := cpuMicros()
	began := time.Now()
	w := New(Config{Options: Options{ChunkRows: 20000, Parallel: parallel, StatementTimeout: time.Minute}, All: true}, q, nil)
	w.Start(ctx)
	defer w.Close()
	out := batch.NewBuilder(batch.Limits{})
	got := 0
	for w.Active() {
		next, err := w.Weave(ctx, out, q.here)
		if err != nil {
			tb.Fatal(err)
		}
		if !out.Empty() {
			got += out.Len()
			if _, err := out.Finish(); err != nil {
				tb.Fatal(err)
			}
			out.Reset()
		}
		if next != More && w.Active() {
			<-w.Ready()
		}
	}
	took := time.Since(began)
	if got < rows {
		tb.Fatalf("%d events, want %d rows", got, rows)
	}
	return took, cpuMicros() - before
}

func cpuMicros() uint64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return uint64(u.Utime.Nano()+u.Stime.Nano()) / 1000
}
