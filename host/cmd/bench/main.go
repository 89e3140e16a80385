// Command bench is what `make bench` runs: it prints what host/bench measures.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/datalink-go/datalink/host/bench"
	"github.com/datalink-go/datalink/host/supervisor/hopbench"
	"github.com/datalink-go/datalink/sdk/proto/rowbench"
)

func main() {
	bench.Child()
	hopbench.Child()
	o := options{}
	flag.StringVar(&o.root, "root", ".", "folder of the module")
	flag.StringVar(&o.only, "only", "", "measure these only: codec,hop,file,mask,allocs,demo,replica,copy,hbase,live,snapshot,latency,large")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of each comparison")
	flag.Int64Var(&o.large, "large", 1<<30, "bytes of the large transaction")
	flag.IntVar(&o.rows, "rows", 300_000, "rows of live and snapshot")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	root, only string
	rounds     int
	large      int64
	rows       int
}

// Sizes of what is measured.
const (
	codecRows    = 1024
	codecEach    = 500 * time.Millisecond
	hopRows      = 40 * 1024
	transactions = 60_000
	rowsOfEach   = 10

	backlogTransactions = 20_000
	copyRows            = 500_000
	hbaseRows           = 60_000
)

func (o *options) run(ctx context.Context) error {
	begun := time.Now()
	dir, err := os.MkdirTemp("", "datalink-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%s, %d CPUs, load %s, %s\n", runtime.Version(), runtime.NumCPU(), load(), begun.UTC().Format(time.DateOnly))
	b, err := bench.Build(ctx, o.root, filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "bench.000001")
	if err := b.WriteLog(ctx, file, transactions, rowsOfEach, 1); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"codec", func() error { return show(rowbench.Measure(o.rounds, codecRows, codecEach)) }},
		{"hop", func() error {
			for _, size := range []int{64, 1024} {
				if err := show(hopbench.Measure(ctx, o.rounds, hopRows, size)); err != nil {
					return err
				}
			}
			return nil
		}},
		{"file", func() error { return show(bench.Files(ctx, o.rounds, b.Plugin("mysql"), file)) }},
		{"mask", func() error { return show(bench.Masks(ctx, b, o.root, dir, o.rounds)) }},
		{"allocs", func() error { return show(bench.Allocations(ctx, b, file, 200, codecRows)) }},
		{"demo", func() error { return each(bench.Demo(ctx, b, o.root, filepath.Join(dir, "demo"))) }},
		{"replica", func() error {
			return show(bench.Replica(ctx, b, o.root, filepath.Join(dir, "replica"), max(1, o.rounds/2), backlogTransactions))
		}},
		{"copy", func() error {
			return show(bench.Copy(ctx, b, o.root, filepath.Join(dir, "copy"), max(1, o.rounds/2), copyRows))
		}},
		{"hbase", func() error {
			return show(bench.HBase(ctx, b, o.root, filepath.Join(dir, "hbase"), max(1, o.rounds/2), hbaseRows))
		}},
		{"live", func() error {
			return each(bench.Live(ctx, b, o.root, filepath.Join(dir, "live"), max(1, o.rounds*5/7), o.rows))
		}},
		{"snapshot", func() error {
			return each(bench.Snapshot(ctx, b, o.root, filepath.Join(dir, "snapshot"), max(1, o.rounds*5/7), o.rows))
		}},
		{"latency", func() error { return each(bench.Latency(ctx, b, o.root, filepath.Join(dir, "latency"))) }},
		{"large", func() error { return each(bench.Large(ctx, b, dir, o.large)) }},
	} {
		if o.only != "" && !strings.Contains(","+o.only+",", ","+part.name+",") {
			continue
		}
		fmt.Printf("\n== %s\n", part.name)
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	fmt.Printf("\n%.0f s, load %s\n", time.Since(begun).Seconds(), load())
	return nil
}

func show[T any](v T, err error) error {
	if err == nil {
		fmt.Println(v)
	}
	return err
}

func each[T any](all []T, err error) error {
	for _, v := range all {
		fmt.Println(v)
	}
	return err
}

// load returns the load averages: figures of a busy machine say little.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:2], " ")
}
