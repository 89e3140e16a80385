package writer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/writer"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// BenchmarkAgainstJava writes and scans rows of ten cells and 310 bytes of values,
// with default durability, by turns with HBase's own client. It reports ratios: rows
// a second and client CPU a row of the writer to those of the better of put(List)
// of 1,000 and BufferedMutator. Run it with -benchtime 1x on a quiet machine;
// DATALINK_BENCH_ROWS sets the rows (default 100000).
func BenchmarkAgainstJava(b *testing.B) {
	rows := 100_000
	if n, err := strconv.Atoi(os.Getenv("DATALINK_BENCH_ROWS")); err == nil {
		rows = n
	}
	s := stack.Start(b, "hbase", "--heap", "2g")
	c, err := rpc.Dial(rpc.Config{ZooKeeper: s.Facts["zookeeper"]})
	must(b, err)
	defer c.Close()
	ctx := context.Background()
	for _, t := range []string{"ours", "put", "buffered"} {
		d := orderTable(nil)
		d.Name = t
		must(b, c.Create(ctx, d))
	}
	classes := filepath.Join(s.Dir, "classes")
	path := classes + ":" + s.Facts["conf"] + ":" + s.Facts["lib"] + "/*"
	if out, err := exec.Command(filepath.Join(filepath.Dir(s.Facts["java"]), "javac"), "-proc:none", "-d", classes, "-cp", path, "testdata/Bench.java").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	java := func(kind, table string) (seconds, cpu float64) {
		out, err := exec.Command(s.Facts["java"], "-Xmx512m", "-cp", path, "Bench", kind, table, strconv.Itoa(rows)).Output()
		must(b, err)
		_, err = fmt.Sscan(string(out), &seconds, &cpu)
		must(b, err)
		return seconds, cpu
	}
	schema := &batch.Schema{ID: 1, Version: 1, Table: "ours", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{{Name: "id", Type: batch.String}}}
	for i := range 9 {
		schema.Columns = append(schema.Columns, batch.Column{Name: fmt.Sprint("column", i), Type: batch.String})
	}
	w, err := writer.New(writer.Config{Settings: writer.Accept}, writer.Cluster{Client: c})
	must(b, err)
	_, err = w.Claim(ctx, sdk.Execution{Task: "bench", TaskUID: "u", StoreUID: "s", ID: "x", Epoch: 1, Writer: "w"})
	must(b, err)
	_, err = w.Prepare(ctx, schema)
	must(b, err)
	work := benchChanges(b, schema, rows)
	for b.Loop() {
		putSec, putCPU := java("put", "put")
		bufSec, bufCPU := java("buffered", "buffered")
		runtime.GC()
		ourSec, ourCPU := measured(func() {
			for _, ch := range work {
				recs, err := w.ApplyAt(ctx, ch)
				must(b, err)
				if len(recs) > 0 {
					b.Fatal(recs[0].Err)
				}
			}
		})
		scanSec, scanCPU := measured(func() {
			x := c.Scanner(rpc.Scan{Table: "put"})
			for {
				if _, err := x.Next(ctx); errors.Is(err, io.EOF) {
					return
				} else if err != nil {
					b.Fatal(err)
				}
			}
		})
		javaScanSec, javaScanCPU := java("scan", "put")
		n := float64(rows)
		b.Logf("put(List) %.0f rows/s %.1f µs CPU a row; BufferedMutator %.0f, %.1f; writer %.0f, %.1f; scan %.0f rows/s, Java's %.0f (CPU %.2f s, %.2f s)",
			n/putSec, putCPU/n*1e6, n/bufSec, bufCPU/n*1e6, n/ourSec, ourCPU/n*1e6, n*1.2/scanSec, n*1.2/javaScanSec, scanCPU, javaScanCPU)
		b.ReportMetric(min(putSec, bufSec)/ourSec, "×rows/s")
		b.ReportMetric(ourCPU/min(putCPU, bufCPU), "×CPU")
		b.ReportMetric(javaScanSec/scanSec, "×scan")
	}
}

func measured(f func()) (seconds, cpu float64) {
	used := func() float64 {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
	}
	was, began := used(), time.Now()
	f()
	return time.Since(began).Seconds(), used() - was
}

// benchChanges makes batches of 8,192 rows.
func benchChanges(b *testing.B, s *batch.Schema, rows int) (out []*sdk.Changes) {
	for from := 0; from < rows; from += 8192 {
		bl := batch.NewBuilder(batch.Limits{Block: 64 << 20})
		must(b, bl.BeginTx(batch.Tx{Begins: true}))
		to := min(rows, from+8192)
		for i := from; i < to; i++ {
			id := fmt.Sprintf("r%012d", i)
			must(b, bl.BeginRow(batch.Insert, s))
			bl.BeginImage(batch.AfterImage)
			bl.PutString(id)
			for c := range 9 {
				bl.PutString(fmt.Sprintf("value %d of row %s, padded!", c, id))
			}
			bl.EndImage()
			must(b, bl.EndRow())
		}
		must(b, bl.EndTx(true, nil, nil))
		data, err := bl.Finish()
		must(b, err)
		var blk batch.Block
		must(b, blk.Decode(data, batch.NewRegistry(), batch.Limits{Block: 64 << 20}))
		ch := &sdk.Changes{}
		seg := make([]sdk.Change, blk.Len())
		for i := range seg {
			var ev batch.Event
			must(b, blk.Event(i, &ev))
			seg[i] = sdk.Change{Op: sdk.Upsert, Kind: batch.Insert, Schema: s, Key: ev.Key, After: ev.After, Version: uint64(time.Now().UnixMicro()) + uint64(i)}
		}
		ch.Segments = [][]sdk.Change{seg}
		out = append(out, ch)
	}
	return out
}
