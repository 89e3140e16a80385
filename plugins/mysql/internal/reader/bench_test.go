package reader

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlogtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// wideFile writes a log of transactions of 10 rows, as single-row statements.
func wideFile(tb testing.TB, transactions int) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "bench.000001")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := binlogtest.WideFile(w, transactions, 10, 1, binlogtest.Options{Checksum: true}); err != nil {
		tb.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// readAll reads a log to its end and returns the rows in it and the blocks they
// came in.
func readAll(tb testing.TB, path string, b *batch.Builder) (rows, blocks int) {
	tb.Helper()
	r, err := New(sdk.Env{}, Config{Files: sdk.Strings{path}, Start: "earliest", DDL: "apply", OnUnknownTable: "stop", OnStatement: "stop"})
	if err != nil {
		tb.Fatal(err)
	}
	ctx := context.Background()
	defer r.Close(ctx)
	if err := r.Open(ctx, sdk.Execution{}, nil, nil); err != nil {
		tb.Fatal(err)
	}
	for {
		b.Reset()
		err := r.Next(ctx, b)
		rows += b.Len()
		blocks++
		if !b.Empty() {
			if _, err := b.Finish(); err != nil {
				tb.Fatal(err)
			}
		}
		if err == io.EOF {
			return rows, blocks
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const benchTransactions = 20_000

// report adds rows per second and CPU seconds per million rows to a benchmark.
func report(b *testing.B, rows int, from time.Duration) {
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric((cpu()-from).Seconds()/float64(rows)*1e6, "cpu-s/Mrow")
}

// BenchmarkRead reads 200,000 rows of 20 columns in transactions of 10 from a
// file into packed blocks of 1024, checksums checked.
func BenchmarkRead(b *testing.B) {
	path := wideFile(b, benchTransactions)
	st, _ := os.Stat(path)
	out := batch.NewBuilder(batch.Limits{})
	b.ReportAllocs()
	b.SetBytes(st.Size())
	from, rows := cpu(), 0
	for b.Loop() {
		n, _ := readAll(b, path, out)
		rows += n
	}
	report(b, rows, from)
}

// BenchmarkGoMySQL is the same file through go-mysql's ParseReader over a
// buffered reader, which decodes only.
func BenchmarkGoMySQL(b *testing.B) {
	path := wideFile(b, benchTransactions)
	st, _ := os.Stat(path)
	b.ReportAllocs()
	b.SetBytes(st.Size())
	from, rows := cpu(), 0
	for b.Loop() {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		src := bufio.NewReaderSize(f, 1<<20)
		_, _ = src.Discard(4)
		p := replication.NewBinlogParser()
		p.SetVerifyChecksum(true)
		p.SetUseDecimal(true)
		err = p.ParseReader(src, func(e *replication.BinlogEvent) error {
			if r, ok := e.Event.(*replication.RowsEvent); ok {
				rows += len(r.Rows)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		_ = f.Close()
	}
	report(b, rows, from)
}

// TestAllocations holds decoding to 0.01 allocations a row.
func TestAllocations(t *testing.T) {
	path := wideFile(t, 20_000)
	b := batch.NewBuilder(batch.Limits{})
	readAll(t, path, b) // fills pools and buffers
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rows, blocks := readAll(t, path, b)
	runtime.ReadMemStats(&after)
	got := float64(after.Mallocs-before.Mallocs) / float64(rows)
	t.Logf("%d rows in %d blocks: %.4f allocations a row", rows, blocks, got)
	if rows != 200_000 || got > 0.01 {
		t.Errorf("%d rows, %.4f allocations a row; want 200000 and at most 0.01", rows, got)
	}
}

// TestWideAgrees compares the generated rows with go-mysql.
func TestWideAgrees(t *testing.T) {
	compareFile(t, wideFile(t, 20))
}
