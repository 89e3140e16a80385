package reader

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlogtest"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// rssAnon is the anonymous memory of this process in MiB.
func rssAnon(tb testing.TB) int {
	tb.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Skip("no /proc")
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kb >> 10
		}
	}
	tb.Fatal("no RssAnon")
	return 0
}

// TestLargeTransaction reads one transaction of LARGE_MIB (1024 in `make soak`,
// else 192) in a process of its own, whose anonymous memory must stay below 150 MiB.
func TestLargeTransaction(t *testing.T) {
	if path := os.Getenv("LARGE_FILE"); path != "" {
		readLarge(t, path)
		return
	}
	mib, _ := strconv.Atoi(os.Getenv("LARGE_MIB"))
	if mib == 0 {
		mib = 192
	}
	path := filepath.Join(t.TempDir(), "large.000001")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	rows := mib << 20 / 305
	if err := binlogtest.WideFile(w, 1, rows, 24, binlogtest.Options{Checksum: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLargeTransaction$", "-test.v")
	cmd.Env = append(os.Environ(), "LARGE_FILE="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := fmt.Sprintf("%d rows", rows); !bytes.Contains(out, []byte(want)) {
		t.Errorf("want %s in\n%s", want, out)
	}
	st, _ := os.Stat(path)
	t.Logf("one transaction of %d MiB:\n%s", st.Size()>>20, out)
}

func readLarge(t *testing.T, path string) {
	r, err := New(sdk.Env{}, Config{Files: sdk.Strings{path}, Start: "earliest", DDL: "apply", OnUnknownTable: "stop", OnStatement: "stop"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := r.Open(ctx, sdk.Execution{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	b := batch.NewBuilder(batch.Limits{})
	rows, most := 0, 0
	for blocks := 0; ; blocks++ {
		b.Reset()
		err := r.Next(ctx, b)
		rows += b.Len()
		if _, ferr := b.Finish(); ferr != nil {
			t.Fatal(ferr)
		}
		if blocks%64 == 0 {
			most = max(most, rssAnon(t))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("%d rows, at most %d MiB of anonymous memory\n", rows, most)
	if most >= 150 {
		t.Errorf("%d MiB of anonymous memory, want less than 150", most)
	}
}
