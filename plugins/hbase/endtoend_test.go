package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tsv reads what a table held when it was recorded.
func tsv(t *testing.T, file string) (columns []string, lines []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	all := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	lines = all[1:]
	slices.Sort(lines)
	return strings.Split(all[0], "\t"), lines
}

var escaper = strings.NewReplacer("\\", "\\\\", "\n", "\\n", "\t", "\\t", "\x00", "\\0")

// cellLines reads a table of HBase in the form of tsv.
func cellLines(t *testing.T, c *rpc.Client, table string, columns []string) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	x := c.Scanner(rpc.Scan{Table: table})
	for {
		rows, err := x.Next(ctx)
		if errors.Is(err, io.EOF) {
			slices.Sort(lines)
			return lines
		}
		must(t, err)
		for _, r := range rows {
			var words []string
			for _, name := range columns {
				word := `\N`
				if i := slices.IndexFunc(r, func(x rpc.Cell) bool { return string(x.Qualifier) == name }); i >= 0 {
					word = escaper.Replace(string(r[i].Value))
				}
				words = append(words, word)
			}
			lines = append(lines, strings.Join(words, "\t"))
		}
	}
}

// A recorded MySQL goes into HBase through the programs that a user runs; run again
// from the beginning, nothing changes.
func TestRecordedMySQLIntoHBase(t *testing.T) {
	s := stack.Start(t, "hbase")
	datalink, root := programs(t)
	recorded := filepath.Join(root, "examples/quickstart/binlogs")
	tables := []string{"shop.customers", "shop.orders", "shop.order_items", "keyed.composite", "keyed.chain", "keyed.reused", "numbers.bigkeys", "times.clocks", "text.enums"}
	have := slices.DeleteFunc(slices.Clone(tables), func(name string) bool {
		_, err := os.Stat(filepath.Join(recorded, "mysql97.expect", name+".tsv"))
		return err != nil
	})
	task := fmt.Sprintf(`apiVersion: datalink/v1
task: to-hbase
reader:
  plugin: mysql
  config:
    files: [%q]
    tables: [%s]
writers:
  - name: hbase
    plugin: hbase
    config:
      zookeeper: %s
      tables:
        shop.orders:
          rowKey: "{salt:4}{id}"
          columns: {note: "d:remark", total: "m:total"}
`, filepath.Join(recorded, "mysql97.00000?"), strings.Join(have, ", "), s.Facts["zookeeper"])
	c, err := rpc.Dial(rpc.Config{ZooKeeper: s.Facts["zookeeper"]})
	must(t, err)
	defer c.Close()
	for run := range 2 {
		dir := t.TempDir()
		file := filepath.Join(dir, "task.yaml")
		text := task
		if run == 1 {
			// Another store knows nothing of what was done: all of it again.
			text = strings.Replace(task, "task: to-hbase", "task: to-hbase-again", 1)
		}
		must(t, os.WriteFile(file, []byte(text), 0o600))
		cmd := exec.Command(datalink, "run", file, "--data-dir", filepath.Join(dir, "data"))
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("run %d: %v\n%s", run, err, out)
		}
		for _, name := range have {
			columns, want := tsv(t, filepath.Join(recorded, "mysql97.expect", name+".tsv"))
			names := slices.Clone(columns)
			if name == "shop.orders" {
				names[slices.Index(names, "note")] = "remark"
			}
			got := cellLines(t, c, strings.Replace(name, ".", ":", 1), names)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("run %d, %s (-source +target):\n%s", run, name, d)
			}
		}
	}
}
