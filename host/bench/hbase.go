package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/datalink-go/datalink/host/null"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// HBaseResult compares the connector, through host and plugin, with HBase's own
// client on one HBase. Rows have ten cells and 310 bytes of values. CPU is that of
// the client alone: of the plugin, and of plugin and host together.
type HBaseResult struct {
	Rows                         int
	Put, Buffered, Writer        Spread // rows a second
	Faster                       Spread // × of the better of put(List) and BufferedMutator
	PluginCPU, ClientCPU         Spread // × of the lesser of theirs
	Scan, JavaScan, ScansFaster  Spread
	PutCPU, WriterCPU, WholeCPUs Spread // µs a row
}

// String returns the result as lines.
func (r HBaseResult) String() string {
	return fmt.Sprintf(`HBase, %d rows: writer %s × rows/s of the better of put(List) of 1,000 and BufferedMutator, its plugin %s × of the client CPU a row, with the host %s
  put(List)          %s rows/s, %s µs CPU a row
  BufferedMutator    %s rows/s
  writer             %s rows/s, %s µs CPU a row, with the host %s
  scan               %s × of Java's: %s rows/s, Java %s`,
		r.Rows, r.Faster, r.PluginCPU, r.ClientCPU, r.Put, r.PutCPU, r.Buffered, r.Writer, r.WriterCPU, r.WholeCPUs, r.ScansFaster, r.Scan, r.JavaScan)
}

// HBase writes and scans rows in turns with HBase's own client.
func HBase(ctx context.Context, b *Built, root, dir string, rounds, rows int) (r HBaseResult, err error) {
	r.Rows = rows
	if err := b.Add(ctx, root, "hbase"); err != nil {
		return r, err
	}
	s, err := start(ctx, root, "hbase", dir, "--heap", "2g")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	classes := filepath.Join(dir, "classes")
	path := classes + ":" + s.facts["conf"] + ":" + s.facts["lib"] + "/*"
	source := filepath.Join(root, "plugins", "hbase", "internal", "writer", "testdata", "Bench.java")
	if out, err := exec.CommandContext(ctx, filepath.Join(filepath.Dir(s.facts["java"]), "javac"), "-proc:none", "-d", classes, "-cp", path, source).CombinedOutput(); err != nil {
		return r, fmt.Errorf("compile %s: %w: %s", source, err, out)
	}
	java := func(kind, table string) (secs, cpu float64, err error) {
		out, err := exec.CommandContext(ctx, s.facts["java"], "-Xmx512m", "-cp", path, "Bench", kind, table, strconv.Itoa(rows)).Output()
		if err == nil {
			_, err = fmt.Sscan(string(out), &secs, &cpu)
		}
		return secs, cpu, err
	}
	blocks, err := hbaseRows(rows)
	if err != nil {
		return r, err
	}
	var all [12][]float64
	n := float64(rows)
	for round := range rounds {
		put, putCPU, err := java("put", "put")
		if err != nil {
			return r, err
		}
		buffered, bufferedCPU, err := java("buffered", "buffered")
		if err != nil {
			return r, err
		}
		ours, plugin, whole, err := hbaseWrite(ctx, b, s.facts["zookeeper"], round, blocks)
		if err != nil {
			return r, err
		}
		scan, err := hbaseScan(ctx, b, s.facts["zookeeper"], round, rows)
		if err != nil {
			return r, err
		}
		javaScan, _, err := java("scan", "ours")
		if err != nil {
			return r, err
		}
		least := min(putCPU, bufferedCPU)
		for i, v := range [...]float64{
			n / put, n / buffered, n / ours, min(put, buffered) / ours, plugin / least, whole / least, n / scan, n / javaScan, javaScan / scan,
			putCPU / n * 1e6, plugin / n * 1e6, whole / n * 1e6,
		} {
			all[i] = append(all[i], v)
		}
	}
	for i, s := range []*Spread{
		&r.Put, &r.Buffered, &r.Writer, &r.Faster, &r.PluginCPU, &r.ClientCPU, &r.Scan, &r.JavaScan, &r.ScansFaster, &r.PutCPU, &r.WriterCPU, &r.WholeCPUs,
	} {
		*s = spread(all[i])
	}
	return r, nil
}

// launch starts the HBase plugin in a role.
func launch(ctx context.Context, b *Built, role manifest.Role, config any) (c *supervisor.Client, end func(), err error) {
	sum, err := digest(b.Plugin("hbase"))
	if err != nil {
		return nil, nil, err
	}
	img, err := supervisor.OpenImage("hbase", b.Plugin("hbase"), sum)
	if err != nil {
		return nil, nil, err
	}
	launcher := supervisor.NewLauncher()
	end = func() {
		if c != nil {
			_ = c.Close(context.WithoutCancel(ctx))
		}
		launcher.Close()
		img.Close()
	}
	if c, err = supervisor.Launch(ctx, launcher, supervisor.Config{Image: img, Role: role, Task: "bench"}); err != nil {
		end()
		return nil, nil, err
	}
	data, err := json.Marshal(config)
	if err == nil {
		a, cerr := c.Configure(ctx, data, "")
		if err = cerr; err == nil && len(a.Problems) > 0 {
			err = fmt.Errorf("configuration: %v", a.Problems)
		}
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return c, end, nil
}

// hbaseWrite writes the blocks through pipeline and plugin. The clock runs from the
// first block to the last answer.
func hbaseWrite(ctx context.Context, b *Built, zookeeper string, round int, blocks []rowBlock) (secs, plugin, whole float64, err error) {
	c, end, err := launch(ctx, b, manifest.Writer, map[string]any{"zookeeper": zookeeper})
	if err != nil {
		return 0, 0, 0, err
	}
	defer end()
	src := &rowSource{Numbers: sdk.Numbers{Format: "bench"}, blocks: blocks}
	var before, after float64
	var began time.Time
	src.begin = func() { began, before = time.Now(), own() }
	pid := cpu(c.PID())
	_, err = pipeline.Run(ctx, pipeline.Config{
		Execution: sdk.Execution{Task: "bench", TaskUID: "bench", StoreUID: "bench", ID: fmt.Sprint("round", round), Epoch: uint64(round + 1)},
		Reader:    pipeline.ReaderConfig{Source: src},
		Writers:   []pipeline.WriterConfig{{Name: "hbase", Sink: c, Versioned: true}},
		Progress:  &forgetful{},
	})
	secs, after = time.Since(began).Seconds(), own()
	plugin = (cpu(c.PID()) - pid).Seconds()
	return secs, plugin, plugin + after - before, err
}

// hbaseScan reads what was written through plugin and pipeline into nothing. The
// clock runs from the first rows to the last.
func hbaseScan(ctx context.Context, b *Built, zookeeper string, round, rows int) (secs float64, err error) {
	columns := []map[string]any{}
	for i := range 9 {
		columns = append(columns, map[string]any{"name": fmt.Sprint("column", i)})
	}
	name := fmt.Sprint("scan", round)
	c, end, err := launch(ctx, b, manifest.Reader, map[string]any{
		"zookeeper": zookeeper, "peer": name, "peerParent": "/datalink/" + name, "serial": false,
		"tables": map[string]any{"ours": map[string]any{"key": []map[string]any{{"name": "id"}}, "columns": columns}},
	})
	if err != nil {
		return 0, err
	}
	defer end()
	sink := new(null.Sink)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := pipeline.Run(ctx, pipeline.Config{
			Execution: sdk.Execution{Task: name, TaskUID: name, ID: name},
			Reader:    pipeline.ReaderConfig{Source: c},
			Writers:   []pipeline.WriterConfig{{Name: "null", Sink: sink, Stores: true}},
			Stop:      stop,
		})
		done <- err
	}()
	var began time.Time
	first := uint64(0)
	for seen := uint64(0); seen < uint64(rows); seen = sink.Totals().Rows {
		if began.IsZero() && seen > 0 {
			began, first = time.Now(), seen
		}
		select {
		case err := <-done:
			return 0, errors.Join(err, errors.New("the scan ended early"))
		case <-time.After(2 * time.Millisecond):
		}
	}
	secs = time.Since(began).Seconds() * float64(rows) / float64(uint64(rows)-first)
	close(stop)
	return secs, errors.Join(<-done, c.Release(ctx, name))
}

// own is the CPU time of this process.
func own() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}
