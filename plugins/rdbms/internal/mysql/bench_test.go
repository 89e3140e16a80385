package mysql

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/rowtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// BenchmarkWrite writes rows from memory to MariaDB, innodb_flush_log_at_trx_commit=1,
// each transaction of 1,000 changes: half new rows, 40 % of rows that are there,
// 10 % deletes. It reports the CPU time of this process a row.
//
//	go test -run xxx -bench Write -benchtime 300x ./plugins/rdbms/internal/mysql
func BenchmarkWrite(b *testing.B) {
	if os.Getenv("REQUIRE_STACK") == "" && os.Getenv("BENCH_STACK") == "" {
		b.Skip("set BENCH_STACK=1: it starts a server")
	}
	s := &testServer{stack.Start(b, "mariadb", "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G", "--innodb-flush-log-at-trx-commit=1", "--skip-log-bin", "--innodb-flush-method=O_DIRECT"), true}
	for _, lanes := range []int{1, 2} {
		for _, size := range []int{100, 1000, 3000} {
			b.Run(fmt.Sprintf("lanes=%d/rows=%d", lanes, size), func(b *testing.B) { benchmarkWrite(b, s, lanes, size) })
		}
	}
}

func wide() *batch.Schema {
	return &batch.Schema{ID: 1, Table: "t", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{
		{Name: "id", Type: batch.Int64},
		{Name: "k", Type: batch.Int32, Flags: batch.Nullable},
		{Name: "u", Type: batch.Uint32, Flags: batch.Nullable},
		{Name: "name", Type: batch.String, Length: 40, Collation: "utf8mb4_bin"},
		{Name: "amt", Type: batch.Decimal, Precision: 12, Scale: 2},
		{Name: "created", Type: batch.DateTime},
		{Name: "note", Type: batch.String, Length: 60, Collation: "utf8mb4_bin", Flags: batch.Nullable},
	}}
}

// benchBatches makes n transactions of one lane.
func benchBatches(b *testing.B, s *batch.Schema, lane, lanes, n, size int) [][]sdk.Change {
	out := make([][]sdk.Change, n)
	id := func(i int) int64 { return int64(i*lanes + lane) }
	top := 0
	row := func(i int, gen int) []any {
		return rowtest.Vals(id(i), i%1000, uint64(i), fmt.Sprintf("customer %d of lane %d", i, lane), fmt.Sprintf("%d.%02d", i, gen%100),
			batch.Civil{Year: 2026, Month: 3, Day: 1 + i%28, Hour: i % 24, Minute: i % 60}.Pack(), fmt.Sprintf("a note that is a little longer, %d", gen))
	}
	for t := range out {
		for k := range size {
			switch {
			case k%10 < 5 || top < size:
				out[t] = append(out[t], rowtest.Change(b, sdk.Upsert, s, nil, row(top, t)))
				top++
			case k%10 < 9:
				out[t] = append(out[t], rowtest.Change(b, sdk.Upsert, s, nil, row((t*7919+k*104729)%(top-size)+k%2, t)))
			default:
				out[t] = append(out[t], rowtest.Change(b, sdk.Remove, s, row((t*1299709+k*15485863)%top, t), nil))
			}
		}
	}
	return out
}

func benchmarkWrite(b *testing.B, s *testServer, lanes, size int) {
	db, schema := s.database(b), wide()
	w := s.writer(b, db, nil)
	ex := execution("a", 1)
	ex.Lanes = int32(lanes)
	claim(b, w, ex)
	_, err := w.Prepare(bg, schema)
	rowtest.Must(b, err)
	distinct := min(30, 30000/size)
	batches := make([][][]sdk.Change, lanes)
	for l := range lanes {
		batches[l] = benchBatches(b, schema, l, lanes, distinct, size)
	}
	each := max(b.N/lanes, 1)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	done := make(chan error, lanes)
	for l := range lanes {
		go func() {
			var err error
			for i := range each {
				if err = write(w, next(int32(l), uint64(i+1)), batches[l][i%distinct]...); err != nil {
					break
				}
			}
			done <- err
		}()
	}
	for range lanes {
		rowtest.Must(b, <-done)
	}
	b.StopTimer()
	rows := float64(each * lanes * size)
	if testing.Verbose() {
		b.Log(s.rows(db, "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_%'"), s.rows(db, "SELECT COUNT(*) FROM t"))
	}
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(cpuTime()-cpu)/rows, "cpu-ns/row")
}

func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
