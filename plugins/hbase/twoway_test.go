package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
)

// TestTwoWay follows two tables into one another. What one task writes is marked with
// the id by which HBase knows the other, so that it does not come back to where it was
// written. Without the marks it is written again and again.
func TestTwoWay(t *testing.T) {
	s := stack.Start(t, "hbase")
	c, err := rpc.Dial(rpc.Config{ZooKeeper: s.Facts["zookeeper"]})
	must(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	ids := map[string]string{"left": "11111111-2222-3333-4444-555555555555", "right": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"}
	for _, marked := range []bool{true, false} {
		name := func(side string) string { return fmt.Sprintf("%s%v", side, marked) }
		var tasks []*task
		for _, side := range []string{"left", "right"} {
			must(t, c.Create(ctx, &rpc.Table{
				Name: name(side), Values: map[string]string{"hbase.hstore.time.to.purge.deletes": "1"},
				Families: []rpc.Family{{Name: "d", Values: map[string]string{"REPLICATION_SCOPE": "1", "VERSIONS": "20", "KEEP_DELETED_CELLS": "TRUE", "NEW_VERSION_BEHAVIOR": "false"}}},
			}))
		}
		for from, to := range map[string]string{"left": "right", "right": "left"} {
			marks := ""
			if marked {
				marks = ", seenBy: [" + ids[to] + "]" // it is the task that reads there
			}
			tasks = append(tasks, newTask(t, fmt.Sprintf(`apiVersion: datalink/v1
task: from-%[1]s
reader:
  plugin: hbase
  config:
    zookeeper: %[3]s
    clusterId: %[4]s
    serial: false
    tables:
      %[1]s:
        name: shop.t
        rowKey: "{id:text}"
        key: [{name: id}]
        columns: [{name: v}]
writers:
  - name: copy
    plugin: hbase
    config: {zookeeper: %[3]s, version: event-time, keyCells: marker, tables: {shop.t: {table: %[2]s, rowKey: "{id:text}"}}%[5]s}
`, name(from), name(to), s.Facts["zookeeper"], ids[from], marks)))
		}
		for _, k := range tasks {
			k.start()
		}
		write := func(side, row string) {
			t.Helper()
			m := rpc.NewMutation([]byte(row), nil)
			m.Put([]byte("d"), []byte("v"), rpc.LatestTimestamp, []byte("from "+side))
			errs, err := c.Batch(ctx, name(side), []rpc.Mutation{m})
			must(t, errors.Join(append(errs, err)...))
		}
		versions := func(side, row string) int {
			t.Helper()
			cells, err := c.Get(ctx, name(side), rpc.Get{Row: []byte(row), Versions: 20, Columns: []rpc.Column{{Family: []byte("d"), Qualifiers: [][]byte{[]byte("v")}}}})
			must(t, err)
			return len(cells)
		}
		await := func(what string, ok func() bool) bool {
			t.Helper()
			for end := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(end) {
					t.Errorf("marked %v: %s\n%s\n%s", marked, what, tasks[0].log(), tasks[1].log())
					return false
				}
			}
			return true
		}
		write("left", "one")
		write("right", "two")
		await("rows do not arrive", func() bool { return versions("right", "one") > 0 && versions("left", "two") > 0 })
		// Of rows that come by the stream alone: what would have come back has come when
		// later ones have made the round.
		for i := range 4 {
			row := fmt.Sprint("later", i)
			write("left", row)
			await("a later row does not arrive", func() bool { return versions("right", row) > 0 })
			write("right", row+"r")
			await("a later row does not arrive", func() bool { return versions("left", row+"r") > 0 })
		}
		if !marked {
			await("nothing comes back: the test shows nothing", func() bool { return versions("left", "later0") > 1 })
		}
		for side, row := range map[string]string{"left": "later0", "right": "later0r"} {
			if n := versions(side, row); marked && n != 1 {
				t.Errorf("row %s of %s, where it was written, has %d versions, want one", row, side, n)
			}
		}
		for _, k := range tasks {
			k.kill()
		}
		for _, side := range []string{"left", "right"} {
			must(t, c.RemovePeer(ctx, "datalink_from_"+name(side)))
		}
	}
}
