// Command readserver reads from a server what a measurement has put there, in one
// of these ways, and prints what it took as JSON:
//
//	stream    the log into blocks, by the reader
//	drain     the log's events, of which it looks at the heads only
//	snapshot  the rows of a table into blocks, by the reader
//	select    the rows of a table by SELECT *, of which it looks at the packets only
//	latency   the log into blocks, and the time since the instants in column 1
//
// Clocks of stream and drain run from the first row that came.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type spec struct {
	address, way, file, table string
	rows, parallel            int
}

// result is what is printed; host/bench reads it.
type result struct {
	Rows    uint64
	Seconds float64
	CPU     float64 // seconds
	RSS     int64   // VmHWM, bytes
	Took    []int64 `json:",omitempty"` // latency: nanoseconds
}

func main() {
	var s spec
	flag.StringVar(&s.address, "address", "", "host:port, as root")
	flag.StringVar(&s.way, "way", "stream", "what to do")
	flag.StringVar(&s.file, "file", "", "file of the log to begin at")
	flag.StringVar(&s.table, "table", "", "database.table")
	flag.IntVar(&s.rows, "rows", 0, "rows that there are")
	flag.IntVar(&s.parallel, "parallel", 4, "connections of a snapshot, or of SELECT *")
	profile := flag.String("profile", "", "file for a CPU profile")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	way, ok := map[string]func(context.Context, *spec, *meter) error{
		"stream": stream, "drain": drain, "snapshot": snapshot, "select": selectAll, "latency": latency,
	}[s.way]
	if !ok {
		way = func(context.Context, *spec, *meter) error { return fmt.Errorf("no way %q", s.way) }
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "readserver:", err)
			os.Exit(1)
		}
		_ = pprof.StartCPUProfile(f)
	}
	var m meter
	if err := way(ctx, &s, &m); err != nil {
		fmt.Fprintf(os.Stderr, "readserver: %s: %v\n", s.way, err)
		os.Exit(1)
	}
	pprof.StopCPUProfile()
	m.RSS = peak()
	if err := json.NewEncoder(os.Stdout).Encode(m.result); err != nil {
		os.Exit(1)
	}
}

// meter measures between two instants.
type meter struct {
	result
	begun time.Time
	used  time.Duration
}

func (m *meter) begin() { m.begun, m.used = time.Now(), cpu() }

func (m *meter) end(rows int) {
	m.Rows, m.Seconds, m.CPU = uint64(rows), time.Since(m.begun).Seconds(), (cpu() - m.used).Seconds()
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak is VmHWM, see proc_pid_status(5).
func peak() int64 {
	data, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}
