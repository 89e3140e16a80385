package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

const root = "../.."

func built(t *testing.T) *Built {
	t.Helper()
	if testing.Short() {
		t.Skip("optional: builds plugins and daemon, not in short mode")
	}
	b, err := Build(t.Context(), root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// anonymous is what each process may have of anonymous memory.
const anonymous = 150 << 20

// TestLargeTransaction moves one transaction that is many times larger than the
// window, and holds the memory of host, reader and writer to a bound. It has
// 256 MiB, and 1 GiB in `make soak`: the memory is the same.
func TestLargeTransaction(t *testing.T) {
	b := built(t)
	size := int64(256 << 20)
	if s := os.Getenv("DATALINK_LARGE"); s != "" {
		var err error
		if size, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	results, err := Large(ctx, b, t.TempDir(), size)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"datalink", "mysql"}, {"datalink", "mysql", "rdbms"}} {
		r := results[i]
		t.Log(r)
		seen := map[string]bool{}
		for _, m := range r.Memory {
			seen[m.Name] = true
			if m.Anonymous >= anonymous {
				t.Errorf("%s, a transaction of %d MiB to %s: %d MB of anonymous memory, want less than %d", m.Name, r.Bytes>>20, r.Target, m.Anonymous>>20, anonymous>>20)
			}
		}
		for _, name := range want {
			if !seen[name] {
				t.Errorf("to %s: no process %s was seen", r.Target, name)
			}
		}
	}
}

// TestMeasures runs the comparisons shortly: all ways bring the same rows, and
// steady states allocate next to nothing. Time is judged by `make bench`.
func TestMeasures(t *testing.T) {
	b := built(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "bench.000001")
	if err := b.WriteLog(t.Context(), file, 5000, 10, 1); err != nil {
		t.Fatal(err)
	}
	files, err := Files(t.Context(), 1, b.Plugin("mysql"), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(files)
	if files.Rows != 50_000 {
		t.Errorf("%d rows, want 50000", files.Rows)
	}
	masks, err := Masks(t.Context(), b, root, dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(masks)
	allocs, err := Allocations(t.Context(), b, file, 20, 1024)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(allocs)
	for what, n := range map[string]float64{"encode": allocs.Encode, "decode": allocs.Decode, "binary log": allocs.Log} {
		if n > 0.01 {
			t.Errorf("%s: %.4f allocations a row, want at most 0.01", what, n)
		}
	}
}

// TestWatched sees the memory of a process below the one that was started.
func TestWatched(t *testing.T) {
	all, err := watched(exec.Command("sh", "-c", "sleep 0.2 & wait"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range all {
		seen[m.Name] = m.Peak > 0
	}
	if !seen["sh"] || !seen["sleep"] {
		t.Errorf("got %v, want sh and sleep", all)
	}
}
