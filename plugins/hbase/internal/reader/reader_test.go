package reader_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/hbase/internal/reader"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// follower applies what a reader gives to a table in memory.
type follower struct {
	t      *testing.T
	r      *reader.Reader
	rows   map[string]string
	kinds  map[batch.Kind]int
	points []sdk.Point
	late   bool // a second table is in the configuration
	state  map[string]batch.StateItem
}

func (f *follower) open(zk string) {
	c, err := rpc.Dial(rpc.Config{ZooKeeper: zk})
	must(f.t, err)
	tables := map[string]reader.Table{}
	for _, name := range []string{"src", "late"} {
		if name == "src" || f.late {
			tables[name] = reader.Table{
				Name: "shop." + name, RowKey: "{id:text}", Key: []reader.Column{{Name: "id", Type: "int32"}},
				Columns: []reader.Column{{Name: "a", Cell: "d:a"}, {Name: "n", Type: "int64"}},
			}
		}
	}
	f.r, err = reader.New(reader.Config{
		Tables: tables, ZooKeeper: zk, Task: "follow-it", Serial: true,
	}, c)
	must(f.t, err)
	var state []batch.StateItem
	for _, s := range f.state {
		state = append(state, s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must(f.t, f.r.Open(ctx, sdk.Execution{Task: "follow-it", TaskUID: "u1"}, f.points, state))
}

// step takes one block and, if it is to be durable, says so.
func (f *follower) step(wait time.Duration, durable bool) bool {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	b := batch.NewBuilder(batch.Limits{})
	if err := f.r.Next(ctx, b); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		f.t.Fatal(err)
	}
	if b.Empty() {
		return false
	}
	data, err := b.Finish()
	must(f.t, err)
	var blk batch.Block
	must(f.t, blk.Decode(bytes.Clone(data), batch.NewRegistry(), batch.Limits{}))
	for i := range blk.Len() {
		var ev batch.Event
		must(f.t, blk.Event(i, &ev))
		f.kinds[ev.Kind]++
		if ev.Kind == batch.State {
			s, err := ev.StateItem()
			must(f.t, err)
			f.state[s.Key] = *s
			continue
		}
		im := ev.After
		if ev.Kind == batch.Delete {
			im = ev.Before
		}
		v, err := im.Values(nil)
		must(f.t, err)
		id := fmt.Sprint(v[0].Int64())
		if ev.Kind == batch.Delete {
			delete(f.rows, id)
			continue
		}
		f.rows[id] = fmt.Sprintf("%s/%s", v[1].Bytes(), v[2].State)
		if v[2].Has() {
			f.rows[id] = fmt.Sprintf("%s/%d", v[1].Bytes(), v[2].Int64())
		}
	}
	if durable {
		p := sdk.Position{Format: "hbase-stream", Version: 1, Source: bytes.Clone(blk.Txs[len(blk.Txs)-1].End)}
		_, p.Version = f.r.PositionFormat()
		f.points = []sdk.Point{{Position: p}}
		must(f.t, f.r.Durable(context.Background(), p))
	}
	return true
}

func table(t testing.TB, c *rpc.Client, name string) map[string]string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out := map[string]string{}
	x := c.Scanner(rpc.Scan{Table: name})
	for {
		rows, err := x.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		must(t, err)
		for _, r := range rows {
			a, n := "", "null"
			for _, c := range r {
				switch string(c.Qualifier) {
				case "a":
					a = string(c.Value)
				case "n":
					n = string(c.Value)
				}
			}
			out[string(r[0].Row)] = a + "/" + n
		}
	}
}

func (f *follower) want(c *rpc.Client) map[string]string {
	out := table(f.t, c, "src")
	if f.late {
		maps.Copy(out, table(f.t, c, "late"))
	}
	return out
}

func (f *follower) until(c *rpc.Client, what string) {
	f.t.Helper()
	end := time.Now().Add(100 * time.Second)
	var want map[string]string
	for time.Now().Before(end) {
		f.step(300*time.Millisecond, true)
		if want = f.want(c); maps.Equal(f.rows, want) {
			return
		}
	}
	f.t.Fatalf("%s (-source +follower):\n%s", what, cmp.Diff(want, f.rows))
}

func TestScanAndChanges(t *testing.T) {
	s := stack.Start(t, "hbase", "replication.sleep.before.failover=500")
	zk := s.Facts["zookeeper"]
	c, err := rpc.Dial(rpc.Config{ZooKeeper: zk})
	must(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	must(t, c.Create(ctx, &rpc.Table{Name: "src", Families: []rpc.Family{{Name: "d", Values: map[string]string{}}}}, []byte("3")))
	name := "src"
	write := func(f func(m *rpc.Mutation), ids ...int) {
		t.Helper()
		var muts []rpc.Mutation
		for _, i := range ids {
			m := rpc.NewMutation(fmt.Append(nil, i), nil)
			f(&m)
			muts = append(muts, m)
		}
		errs, err := c.Batch(ctx, name, muts)
		must(t, errors.Join(append(errs, err)...))
	}
	d := []byte("d")
	put := func(q, v string) func(m *rpc.Mutation) {
		return func(m *rpc.Mutation) { m.Put(d, []byte(q), rpc.LatestTimestamp, []byte(v)) }
	}
	var ids []int
	for i := range 500 {
		ids = append(ids, i)
	}
	write(put("a", "first"), ids...)
	f := &follower{t: t, rows: map[string]string{}, kinds: map[batch.Kind]int{}, state: map[string]batch.StateItem{}}
	f.open(zk)
	write(put("n", "1"), ids[:50]...) // while the scan is still to come
	f.step(time.Minute, true)
	write(func(m *rpc.Mutation) { m.Delete(d, nil, rpc.LatestTimestamp, rpc.TypeDeleteFamily) }, 3, 7, 400)
	f.until(c, "scan and what changed meanwhile")
	if f.kinds[batch.Read] < 490 {
		t.Errorf("%d rows of the scan, kinds %v", f.kinds[batch.Read], f.kinds)
	}
	write(put("a", "second"), ids[100:200]...)
	write(func(m *rpc.Mutation) { m.Delete(d, []byte("n"), rpc.LatestTimestamp, rpc.TypeDeleteColumn) }, 10, 11)
	write(put("n", "-5"), 1000, 1001)
	f.until(c, "changes")

	f.looks(ctx, c)

	// What is handed over and not durable when the reader dies comes again.
	write(put("a", "third"), ids[200:260]...)
	for n := 0; n < 50 && !f.step(300*time.Millisecond, false); n++ {
	}
	must(t, f.r.Close(ctx))
	write(put("a", "while away"), 1, 2)
	f.rows = f.want(c)
	for _, i := range append(ids[200:260], 1, 2) {
		f.rows[fmt.Sprint(i)] = "lost"
	}
	f.open(zk)
	f.until(c, "after the reader died")

	// The server dies, and comes again with what it had not shipped.
	write(put("a", "fourth"), ids[300:360]...)
	s.Kill()
	s.Restart()
	write(put("a", "fifth"), ids[360:380]...)
	f.until(c, "after the server died")
	// B139: a table that comes to the configuration later brings the rows that were
	// there, and then its changes.
	must(t, c.Create(ctx, &rpc.Table{Name: "late", Families: []rpc.Family{{Name: "d", Values: map[string]string{}}}}))
	name = "late"
	write(put("a", "sixth"), 5000, 5001)
	must(t, f.r.Close(ctx))
	f.late = true
	f.open(zk)
	f.until(c, "rows of a table that came later")
	write(put("a", "seventh"), 5001, 5002)
	f.until(c, "changes of a table that came later")
	must(t, f.r.Release(ctx, "u1"))
	if peers, err := c.Peers(ctx); err != nil || len(peers) != 0 {
		t.Errorf("peers %v, %v", peers, err)
	}
	must(t, f.r.Close(ctx))
}

// looks compares ranges and keys that are read beside the stream with the table,
// and what is proposed for tables that nobody described.
func (f *follower) looks(ctx context.Context, c *rpc.Client) {
	t := f.t
	schemas := map[string]*batch.Schema{}
	must(t, f.r.Discover(ctx, func(s *batch.Schema) error { schemas[s.Name()] = s; return nil }))
	s := schemas["shop.src"]
	if s == nil {
		t.Fatalf("discovered %v", schemas)
	}
	got := map[string]string{}
	var keys [][]byte
	take := func(b *batch.Builder) {
		data, err := b.Finish()
		must(t, err)
		var blk batch.Block
		must(t, blk.Decode(data, batch.NewRegistry(), batch.Limits{}))
		for i := range blk.Len() {
			var ev batch.Event
			must(t, blk.Event(i, &ev))
			v, err := ev.After.Values(nil)
			must(t, err)
			n := "null"
			if v[2].Has() {
				n = fmt.Sprint(v[2].Int64())
			}
			got[fmt.Sprint(v[0].Int64())] = string(v[1].Bytes()) + "/" + n
			keys = append(keys, bytes.Clone(ev.Key))
		}
	}
	calls := 0
	for rest := (sdk.Range{Schema: s, Rows: 100}); rest.Schema != nil; calls++ {
		b := batch.NewBuilder(batch.Limits{})
		p, err := f.r.ReadRange(ctx, rest, b)
		must(t, err)
		take(b)
		rest = p.Rest
	}
	want := table(t, c, "src")
	if d := cmp.Diff(want, got); d != "" || calls < 5 {
		t.Errorf("%d ranges (-table +got):\n%s", calls, d)
	}
	clear(got)
	b := batch.NewBuilder(batch.Limits{})
	_, err := f.r.ReadKeys(ctx, s, keys[:7], b)
	must(t, err)
	if take(b); len(got) != 7 {
		t.Errorf("%d of 7 keys found", len(got))
	}
	for id, row := range got {
		if want[id] != row {
			t.Errorf("key %s: got %s, want %s", id, row, want[id])
		}
	}
	bare, err := reader.New(reader.Config{Task: "look"}, c)
	must(t, err)
	must(t, bare.Discover(ctx, func(s *batch.Schema) error { schemas[s.Name()] = s; return nil }))
	var proposed []string
	for _, c := range schemas["src"].Columns {
		proposed = append(proposed, c.Name+" "+c.Type.String())
	}
	if d := cmp.Diff([]string{"row int64", "d:a string", "d:n int64"}, proposed); d != "" {
		t.Errorf("proposal (-want +got):\n%s", d)
	}
}
