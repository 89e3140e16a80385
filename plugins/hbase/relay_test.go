package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
)

// HBase is followed into SQLite and into another HBase table by the programs that a
// user runs, while the daemon's process is killed.
func TestHBaseIntoOthers(t *testing.T) {
	s := stack.Start(t, "hbase", "replication.sleep.before.failover=500")
	datalink, _ := programs(t)
	zk := s.Facts["zookeeper"]
	c, err := rpc.Dial(rpc.Config{ZooKeeper: zk})
	must(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	must(t, c.Create(ctx, &rpc.Table{Name: "shop:orders", Families: []rpc.Family{{Name: "d", Values: map[string]string{"REPLICATION_SCOPE": "1"}}}}, []byte("5")))
	write := func(v string, gone bool, from, to int) {
		t.Helper()
		var muts []rpc.Mutation
		for i := from; i < to; i++ {
			m := rpc.NewMutation(fmt.Append(nil, i), nil)
			if gone {
				m.Delete([]byte("d"), nil, rpc.LatestTimestamp, rpc.TypeDeleteFamily)
			} else {
				m.Put([]byte("d"), []byte("status"), rpc.LatestTimestamp, []byte(v))
				m.Put([]byte("d"), []byte("total"), rpc.LatestTimestamp, fmt.Appendf(nil, "%d.50", i))
			}
			muts = append(muts, m)
		}
		errs, err := c.Batch(ctx, "shop:orders", muts)
		must(t, errors.Join(append(errs, err)...))
	}
	write("new", false, 0, 300)

	dir := t.TempDir()
	file, target := filepath.Join(dir, "task.yaml"), filepath.Join(dir, "target.db")
	must(t, os.WriteFile(file, fmt.Appendf(nil, `apiVersion: datalink/v1
task: relay
reader:
  plugin: hbase
  config:
    zookeeper: %[1]s
    tables:
      "shop:orders":
        rowKey: "{id:text}"
        key: [{name: id, type: int64}]
        columns: [{name: status}, {name: total, type: decimal, scale: 2}]
writers:
  - name: sqlite
    plugin: rdbms
    config: {url: "sqlite://%[2]s"}
  - name: copy
    plugin: hbase
    config:
      zookeeper: %[1]s
      tables: {shop.orders: {table: "copy", rowKey: "{id:text}"}}
`, zk, target), 0o600))
	run := func() *exec.Cmd {
		cmd := exec.Command(datalink, "run", file, "--data-dir", filepath.Join(dir, "data"))
		log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		must(t, err)
		cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, dir
		must(t, cmd.Start())
		log.Close()
		return cmd
	}
	columns := []string{"id", "status", "total"}
	until := func(what string) {
		t.Helper()
		var want, inFile, inCopy []string
		for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			want = cellLines(t, c, "shop:orders", columns[1:])
			inFile = sqlLines(target, "shop.orders", columns[1:])
			inCopy = nil
			if _, err := c.Describe(ctx, "copy"); err == nil {
				inCopy = cellLines(t, c, "copy", columns[1:])
			}
			if len(want) > 0 && slices.Equal(want, inFile) && slices.Equal(want, inCopy) {
				return
			}
		}
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("%s: SQLite (-source +target): %s\ncopy: %s\n%s", what, cmp.Diff(want, inFile), cmp.Diff(want, inCopy), log[max(0, len(log)-3000):])
	}
	cmd := run()
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	until("scan")
	write("paid", false, 100, 150)
	write("", true, 10, 20)
	until("changes")
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	write("sent", false, 150, 200)
	write("", true, 30, 40)
	cmd = run()
	until("after kill -9")
}
