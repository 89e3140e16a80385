package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
)

func testClient(t testing.TB, s *stack.Server, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{ZooKeeper: s.Facts["zookeeper"]}
	for _, f := range change {
		f(&cfg)
	}
	c, err := Dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func create(t testing.TB, c *Client, name string, splits ...string) {
	t.Helper()
	var at [][]byte
	for _, s := range splits {
		at = append(at, []byte(s))
	}
	err := c.Create(testContext(t), &Table{Name: name, Families: []Family{{Name: "f", Values: map[string]string{"KEEP_DELETED_CELLS": "TRUE"}}}}, at...)
	if err != nil {
		t.Fatal(err)
	}
}

func rowsOf(t testing.TB, c *Client, s Scan) (out []string) {
	t.Helper()
	x := c.Scanner(s)
	for {
		rows, err := x.Next(testContext(t))
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			text := string(r[0].Row)
			for _, c := range r {
				text += fmt.Sprintf(" %s:%s@%d/%d=%s", c.Family, c.Qualifier, c.Timestamp, c.Type, c.Value)
			}
			out = append(out, text)
		}
	}
}

func TestClient(t *testing.T) {
	s := stack.Start(t, "hbase", "--regionservers", "2", "hbase.hfile.compaction.discharger.interval=200", "hbase.master.regions.recovery.check.interval=1000")
	ctx := testContext(t)
	f := []byte("f")

	for name, change := range map[string]func(*Config){
		"zookeeper": func(*Config) {},
		"masters":   func(c *Config) { c.ZooKeeper, c.Masters = "", []string{fmt.Sprintf("localhost:%d", s.Port)} },
	} {
		t.Run(name, func(t *testing.T) {
			c := testClient(t, s, change)
			id, err := c.ClusterID(ctx)
			if err != nil || len(id) != 36 {
				t.Fatalf("cluster id: %q, %v", id, err)
			}
			table := "t_" + name
			create(t, c, table, "row-0300", "row-0600")
			buf := make([]byte, 0, 1<<20)
			var muts []Mutation
			for i := range 1000 {
				m := NewMutation(fmt.Appendf(nil, "row-%04d", i), buf)
				m.Put(f, []byte("a"), 10, fmt.Appendf(nil, "v%d", i))
				m.Put(f, []byte("b"), 10, []byte("x"))
				if i%2 == 0 {
					m.Delete(f, []byte("b"), 11, TypeDeleteColumn)
				}
				muts, buf = append(muts, m), m.Tail()
			}
			errs, err := c.Batch(ctx, table, muts)
			if err = errors.Join(append(errs, err)...); err != nil {
				t.Fatal(err)
			}
			got := rowsOf(t, c, Scan{Table: table, Rows: 70})
			if len(got) != 1000 || got[0] != "row-0000 f:a@10/4=v0" || got[301] != "row-0301 f:a@10/4=v301 f:b@10/4=x" {
				t.Errorf("scan of %d rows, 0: %q, 301: %q", len(got), got[0], got[min(301, len(got)-1)])
			}
			if got := rowsOf(t, c, Scan{Table: table, Start: []byte("row-0299"), After: true, Stop: []byte("row-0302")}); len(got) != 2 {
				t.Errorf("scan across regions: %q", got)
			}
			cells, err := c.Get(ctx, table, Get{Row: []byte("row-0777")})
			if err != nil || len(cells) != 2 || string(cells[0].Value) != "v777" {
				t.Errorf("get: %v %v", cells, err)
			}
			if cells, err = c.Get(ctx, table, Get{Row: []byte("none")}); err != nil || len(cells) != 0 {
				t.Errorf("get of no row: %v %v", cells, err)
			}
			del := NewMutation([]byte("row-0001"), nil)
			del.Delete(f, nil, 20, TypeDeleteFamily)
			if errs, err := c.Batch(ctx, table, []Mutation{del}); errors.Join(append(errs, err)...) != nil {
				t.Error(errs, err)
			}
			if cells, err = c.Get(ctx, table, Get{Row: []byte("row-0001")}); err != nil || len(cells) != 0 {
				t.Errorf("get of a deleted row: %v %v", cells, err)
			}
			bad := NewMutation([]byte("row-0002"), nil)
			bad.Put([]byte("nofamily"), []byte("q"), 1, nil)
			good := NewMutation([]byte("row-0003"), nil)
			good.Put(f, []byte("q"), 1, []byte("good"))
			errs, err = c.Batch(ctx, table, []Mutation{bad, good})
			if err != nil || !errors.Is(errs[0], ErrNoFamily) || errs[1] != nil {
				t.Errorf("batch with a bad row: %v %v", errs, err)
			}
			for i, want := range []bool{true, false} {
				m := NewMutation([]byte("lock"), nil)
				m.Put(f, []byte("owner"), uint64(i+1), []byte("me"))
				if ok, err := c.CheckAndMutate(ctx, table, Condition{Family: f, Qualifier: []byte("owner")}, &m); ok != want || err != nil {
					t.Errorf("check and mutate: %v %v", ok, err)
				}
			}
			m := NewMutation([]byte("lock"), nil)
			m.Put(f, []byte("owner"), 3, []byte("you"))
			if ok, err := c.CheckAndMutate(ctx, table, Condition{f, []byte("owner"), []byte("me")}, &m); !ok || err != nil {
				t.Errorf("check and mutate of a value: %v %v", ok, err)
			}
			d, err := c.Describe(ctx, table)
			if err != nil || d.Family("f").Values["KEEP_DELETED_CELLS"] != "TRUE" {
				t.Errorf("describe: %+v %v", d, err)
			}
			if _, err := c.Describe(ctx, "nowhere"); !errors.Is(err, ErrNoTable) {
				t.Errorf("describe of no table: %v", err)
			}
			if _, err := c.Get(ctx, "nowhere", Get{Row: f}); !errors.Is(err, ErrNoTable) {
				t.Errorf("get of no table: %v", err)
			}
			if err := c.Flush(ctx, table); err != nil {
				t.Error(err)
			}
			if err := c.MajorCompact(ctx, table); err != nil {
				t.Error(err)
			}
			if err := c.Disable(ctx, table); err != nil {
				t.Error(err)
			}
			if err := c.Delete(ctx, table); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("frozen", func(t *testing.T) { frozen(t, s) })
	t.Run("reshaped", func(t *testing.T) { reshaped(t, s) })
}

// frozen writes to a server that stands still: the call ends with its context, and
// goes through once the server is back (B133).
func frozen(t *testing.T, s *stack.Server) {
	c := testClient(t, s)
	create(t, c, "frozen")
	m := NewMutation([]byte("row"), nil)
	m.Put([]byte("f"), []byte("a"), 1, []byte("x"))
	write := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		errs, err := c.Batch(ctx, "frozen", []Mutation{m})
		return errors.Join(append(errs, err)...)
	}
	if err := write(time.Minute); err != nil {
		t.Fatal(err)
	}
	s.Signal(syscall.SIGSTOP)
	began := time.Now()
	err := write(time.Second)
	s.Signal(syscall.SIGCONT)
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 10*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
	if err := write(time.Minute); err != nil {
		t.Error(err)
	}
}

// reshaped writes and scans while regions are split, moved and merged.
func reshaped(t *testing.T, s *stack.Server) {
	c, admin := testClient(t, s), testClient(t, s)
	ctx := testContext(t)
	create(t, c, "moving")
	stop, done := make(chan struct{}), make(chan error, 1)
	const rows = 400
	writes := 0
	go func() {
		for v := uint64(1); ; v++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			var muts []Mutation
			for i := range rows {
				m := NewMutation(fmt.Appendf(nil, "row-%04d", i), nil)
				m.Put([]byte("f"), []byte("a"), v, fmt.Append(nil, v))
				muts = append(muts, m)
			}
			errs, err := c.Batch(ctx, "moving", muts)
			if err = errors.Join(append(errs, err)...); err != nil {
				done <- err
				return
			}
			writes++
			if got := rowsOf(t, c, Scan{Table: "moving", Rows: 30}); len(got) != rows {
				done <- fmt.Errorf("scan %d: %d rows, want %d", v, len(got), rows)
				return
			}
		}
	}()
	for _, at := range []string{"row-0200", "row-0100", "row-0300"} {
		// Not splittable while files refer to those of the region before the last split.
		err := admin.Split(ctx, "moving", []byte(at))
		for n := 0; err != nil && ctx.Err() == nil; n++ {
			if err := admin.MajorCompact(ctx, "moving"); err != nil {
				t.Fatal(err)
			}
			_ = backoff(ctx, n)
			err = admin.Split(ctx, "moving", []byte(at))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		regions, err := admin.Regions(ctx, "moving")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range regions {
			if err := admin.Move(ctx, r, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := admin.MajorCompact(ctx, "moving"); err != nil {
		t.Fatal(err)
	}
	regions, err := admin.Regions(ctx, "moving")
	if err != nil || len(regions) != 4 {
		t.Fatalf("%d regions, %v", len(regions), err)
	}
	if err := admin.Merge(ctx, regions[0], regions[1]); err != nil {
		t.Fatal(err)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d batches", writes)
	var first []byte
	for i, line := range rowsOf(t, c, Scan{Table: "moving"}) {
		v := []byte(line[bytes.IndexByte([]byte(line), '@'):])
		if i == 0 {
			first = v
		}
		if !bytes.Equal(v, first) {
			t.Errorf("%s, others %s", line, first)
		}
	}
	// A server that ends.
	r, err := c.Locate(ctx, "moving", []byte("row-0000"))
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.StopServer(ctx, r.Addr); err != nil {
		t.Fatal(err)
	}
	m := NewMutation([]byte("row-0000"), nil)
	m.Put([]byte("f"), []byte("a"), 1<<40, []byte("after"))
	if errs, err := c.Batch(ctx, "moving", []Mutation{m}); errors.Join(append(errs, err)...) != nil {
		t.Fatal(errs, err)
	}
	if cells, err := c.Get(ctx, "moving", Get{Row: []byte("row-0000")}); err != nil || string(cells[0].Value) != "after" {
		t.Fatal(cells, err)
	}
	now, _ := c.Locate(ctx, "moving", []byte("row-0000"))
	t.Logf("from %s to %s", r.Addr, now.Addr)
}
