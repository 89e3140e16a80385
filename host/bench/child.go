package bench

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/datalink-go/datalink/host/null"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// env says what a child of this program reads the file with.
const env = "BENCH_CHILD"

// Child does not return in a process that Files has started.
func Child() {
	way := os.Getenv(env)
	if way == "" {
		return
	}
	var r Reading
	var err error
	begun := time.Now()
	switch way {
	case "pipeline-live", "gomysql-live":
		var spec liveSpec
		if err = json.Unmarshal([]byte(os.Args[2]), &spec); err != nil {
			break
		}
		if way == "pipeline-live" {
			r, err = readLivePipeline(os.Args[1], &spec)
		} else {
			r, err = readLiveGoMySQL(&spec)
		}
	case "pipeline":
		r.Rows, r.Values, err = readPipeline(context.Background(), os.Args[1], os.Args[2])
		r.Seconds = time.Since(begun).Seconds()
	default:
		r.Rows, err = readGoMySQL(os.Args[2], way == "gomysql-checked")
		r.Seconds = time.Since(begun).Seconds()
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Reading is one reading of a log by a process of its own.
type Reading struct {
	Rows, Values uint64
	Seconds      float64 // from the start of the connector to its end; live: from the first row on
	CPU          float64 // seconds of the process and its children in that time
	RSS          int64   // live: the most that the process that reads had resident
	Took         []int64 `json:",omitempty"` // latencies in nanoseconds
}

// readIn reads the file in a new process.
func readIn(ctx context.Context, way, plugin, file string) (Reading, error) {
	var r Reading
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, self, plugin, file)
	cmd.Env = append(os.Environ(), env+"="+way)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("read %s by %s: %w", file, way, err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, err
	}
	// Of a child that was waited for, these include its own children.
	r.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return r, nil
}

// readPipeline reads the file with the plugin as a process, the host's pipeline
// and its null writer.
func readPipeline(ctx context.Context, plugin, file string) (rows, values uint64, err error) {
	config, err := json.Marshal(map[string]any{"files": []string{file}})
	if err != nil {
		return 0, 0, err
	}
	sink := new(null.Sink)
	err = pipe(ctx, plugin, config, sink)
	t := sink.Totals()
	return t.Rows, t.Values, err
}

// pipe runs a pipeline from the plugin to the sink until the source ends.
func pipe(ctx context.Context, plugin string, config []byte, sink *null.Sink) error {
	sum, err := digest(plugin)
	if err != nil {
		return err
	}
	img, err := supervisor.OpenImage(filepath.Base(plugin), plugin, sum)
	if err != nil {
		return err
	}
	defer img.Close()
	launcher := supervisor.NewLauncher()
	defer launcher.Close()
	c, err := supervisor.Launch(ctx, launcher, supervisor.Config{Image: img, Role: manifest.Reader, Task: "bench"})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	a, err := c.Configure(ctx, config, "")
	if err != nil {
		return err
	}
	if len(a.Problems) > 0 {
		return fmt.Errorf("configuration of %s: %v", plugin, a.Problems)
	}
	res, err := pipeline.Run(ctx, pipeline.Config{
		Execution: sdk.Execution{Task: "bench", TaskUID: "bench", ID: "bench"},
		Reader:    pipeline.ReaderConfig{Source: c},
		Writers:   []pipeline.WriterConfig{{Name: "null", Sink: sink, Stores: true}},
	})
	if err == nil && !res.Ended {
		err = fmt.Errorf("the source has not ended")
	}
	return err
}

// readGoMySQL decodes the file and keeps nothing.
func readGoMySQL(file string, checked bool) (rows uint64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	src := bufio.NewReaderSize(f, 1<<20)
	if _, err := src.Discard(4); err != nil { // the magic bytes
		return 0, err
	}
	p := replication.NewBinlogParser()
	p.SetVerifyChecksum(checked)
	err = p.ParseReader(src, func(e *replication.BinlogEvent) error {
		if r, ok := e.Event.(*replication.RowsEvent); ok {
			rows += uint64(len(r.Rows))
		}
		return nil
	})
	return rows, err
}

func digest(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
