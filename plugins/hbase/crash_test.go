package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
)

// crashRig is a table of HBase that is followed into SQLite.
type crashRig struct {
	t      *testing.T
	zk     string
	c      *rpc.Client
	table  string
	shaker *shaker
	*task
	target string
}

func newCrashRig(t *testing.T, zk string, c *rpc.Client, name, options string) *crashRig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &crashRig{t: t, zk: zk, c: c, table: name}
	must(t, c.Create(ctx, &rpc.Table{Name: name, Families: []rpc.Family{{Name: "d", Values: map[string]string{"REPLICATION_SCOPE": "1", "VERSIONS": "3"}}}}, []byte("050"), []byte("100")))
	r.shaker = &shaker{c: c, table: name, rows: 150, rng: rand.New(rand.NewPCG(7, uint64(len(name)))), plain: strings.Contains(options, "change")}
	for range 40 {
		must(t, r.shaker.step(ctx))
	}
	r.target = filepath.Join(t.TempDir(), "target.db")
	r.task = newTask(t, fmt.Sprintf(`apiVersion: datalink/v1
task: %[1]s
reader:
  plugin: hbase
  config:
    zookeeper: %[2]s
    %[4]s
    tables:
      %[1]s:
        name: shop.%[1]s
        rowKey: "{id:text}"
        key: [{name: id, type: string}]
        columns: [{name: status}, {name: total, type: decimal, scale: 2}]
writers:
  - name: sqlite
    plugin: rdbms
    config: {url: "sqlite://%[3]s"}
`, name, zk, r.target, options))
	t.Cleanup(func() {
		r.kill()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.RemovePeer(ctx, "datalink_"+name); err != nil {
			t.Log(err)
		}
	})
	return r
}

func (r *crashRig) source() []string {
	return cellLines(r.t, r.c, r.table, []string{"status", "total"})
}

func (r *crashRig) copied() []string {
	return sqlLines(r.target, "shop."+r.table, []string{"status", "total"})
}

func (r *crashRig) equal(what string) {
	r.t.Helper()
	r.until(what, 90*time.Second, r.source, r.copied)
}

// killed waits until a fail point has killed a process.
func (r *crashRig) killed(point string, before int) {
	r.t.Helper()
	for end := time.Now().Add(40 * time.Second); r.running() && r.deaths() == before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s: nothing was killed\n%s", point, r.log())
		}
	}
}

// onlyOnce are the fail points that a task passes at its beginning.
var onlyOnce = []string{"hbase.peer-added", "hbase.scanning", "hbase.scanned", "hbase.peer-enabled"}

// TestCrashes kills the reader at each of its fail points, and reader, writer and
// daemon at random, while rows of a real HBase change: the target is equal to the
// source whenever changes end. With sources answered before their changes are
// stored it is not.
func TestCrashes(t *testing.T) {
	s := stack.Start(t, "hbase", "replication.sleep.before.failover=500", "replication.source.maxretriesmultiplier=3")
	zk := s.Facts["zookeeper"]
	c, err := rpc.Dial(rpc.Config{ZooKeeper: zk})
	must(t, err)
	defer c.Close()
	points := failPoints(t)
	if len(points) < 8 {
		t.Fatalf("found %d fail points: %q", len(points), points)
	}
	t.Run("scan", func(t *testing.T) {
		for i, point := range onlyOnce {
			if !slices.Contains(points, point) {
				t.Fatalf("fail point %s is not there", point)
			}
			r := newCrashRig(t, zk, c, fmt.Sprint("begun", i), "scanners: 2")
			stop := r.shaker.shake(t, 5*time.Millisecond)
			r.start("DATALINK_FAILPOINT=" + point)
			r.killed(point, 0)
			stop()
			r.equal(point)
			r.kill()
		}
	})
	t.Run("stream", func(t *testing.T) {
		for i, mode := range []string{"row: current", "row: change"} {
			r := newCrashRig(t, zk, c, fmt.Sprint("stream", i), mode)
			r.start()
			r.equal("scan")
			r.kill()
			for n, point := range points {
				if slices.Contains(onlyOnce, point) || n%2 != i && mode == "row: change" && point != "hbase.answering" {
					continue
				}
				before := r.deaths()
				r.start(fmt.Sprintf("DATALINK_FAILPOINT=%s:%d", point, 1+n%3))
				stop := r.shaker.shake(t, 5*time.Millisecond)
				r.killed(point, before)
				stop()
				if !r.running() {
					r.start()
				}
				r.equal(mode + ", " + point)
				r.kill()
			}
		}
	})
	t.Run("random", func(t *testing.T) {
		r := newCrashRig(t, zk, c, "random", "row: current")
		rounds := 6
		if n, err := strconv.Atoi(os.Getenv("DATALINK_CRASH_ROUNDS")); err == nil {
			rounds = n
		}
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		stop := r.shaker.shake(t, 5*time.Millisecond)
		r.start()
		for range rounds {
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
			if !r.running() {
				t.Fatalf("the task has ended\n%s", r.log())
			}
			name := []string{"datalink", "hbase", "rdbms"}[rng.IntN(3)]
			for _, pid := range r.plugins(name) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			if name == "datalink" {
				r.kill()
				r.start()
			}
		}
		stop()
		r.equal("random kills")
	})
	t.Run("answered before it is stored", func(t *testing.T) {
		for _, env := range []string{"DATALINK_SWITCH=none", "DATALINK_SWITCH=hbase-answer-early"} {
			early := strings.HasSuffix(env, "early")
			r := newCrashRig(t, zk, c, fmt.Sprint("early", early), "row: current")
			r.start()
			r.equal("scan")
			lost := false
			for round := 1; round <= 6 && !lost; round++ {
				r.kill()
				r.start(env)
				r.put(fmt.Sprint("ready", round))
				for _, pid := range r.plugins("rdbms") { // nothing is stored from here on
					_ = syscall.Kill(pid, syscall.SIGSTOP)
				}
				r.put(fmt.Sprint("written", round))
				time.Sleep(time.Duration(round) * 150 * time.Millisecond)
				r.kill()
				r.start()
				r.put(fmt.Sprint("later", round))
				lost = !slices.Equal(r.source(), r.copied())
				if !early {
					r.equal("answered when stored")
					lost = false
					break
				}
			}
			if early && !lost {
				t.Error("nothing is lost: the test shows nothing")
			}
		}
	})
}

// put writes a row and waits until the target has it.
func (r *crashRig) put(row string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	m := rpc.NewMutation([]byte(row), nil)
	m.Put([]byte("d"), []byte("status"), rpc.LatestTimestamp, []byte(row))
	errs, err := r.c.Batch(ctx, r.table, []rpc.Mutation{m})
	must(r.t, errors.Join(append(errs, err)...))
	if strings.HasPrefix(row, "written") {
		return
	}
	r.until("row "+row, time.Minute, func() []string { return []string{row + "\t\\N"} }, func() []string {
		return slices.DeleteFunc(r.copied(), func(l string) bool { return !strings.HasPrefix(l, row+"\t") })
	})
}
