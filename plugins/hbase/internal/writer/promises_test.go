package writer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/plugins/hbase/internal/hbasetest"
	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/writer"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func claimed(t *testing.T, st writer.Store, epoch uint64, cfg writer.Config, s *batch.Schema) (*writer.Writer, sdk.Claimed) {
	t.Helper()
	if cfg.Tables == nil {
		cfg.Tables = map[string]writer.Rule{"t": {Table: "order", RowKey: "0000-{id}"}}
	}
	w, err := writer.New(cfg, st)
	must(t, err)
	c, err := w.Claim(context.Background(), sdk.Execution{Task: "t", TaskUID: "u", StoreUID: "s", ID: fmt.Sprint("x", epoch), Epoch: epoch, Writer: "w"})
	must(t, err)
	_, err = w.Prepare(context.Background(), s)
	must(t, err)
	return w, c
}

// A row goes from S1 over S2 to S3. The worker that has read S1 and S2 stands still,
// its heir writes all three, and then it writes what it has: S3 stays.
func TestLateStatesStayBelow(t *testing.T) {
	for _, sw := range []writer.Switches{{}, {ServerTime: true}} {
		m := hbasetest.New()
		got := tellLateStates(t, m.Client, sw, func() { m.MajorCompact("order") })
		want := lateStatesTold
		if stays := got == want; stays != !sw.ServerTime {
			t.Errorf("switches %+v: (-want +got):\n%s", sw, cmp.Diff(want, got))
		}
	}
}

// lateStates is the same on a server.
func lateStates(t *testing.T, open func() writer.Store, compact func()) {
	if d := cmp.Diff(lateStatesTold, tellLateStates(t, open, writer.Switches{}, compact)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

const lateStatesTold = `heir wrote S1 S2 S3: ["0000-k a=S b=S3"]
paused worker wrote S1: ["0000-k a=S b=S3"]
paused worker wrote S2: ["0000-k a=S b=S3"]
major compaction: ["0000-k a=S b=S3"]
paused worker wrote S1 S2 again: ["0000-k a=S b=S3"]
heir removed the row: []
paused worker wrote S2: []
major compaction: []
paused worker wrote S1 S2 again: []
`

func tellLateStates(t *testing.T, open func() writer.Store, sw writer.Switches, compact func()) (told string) {
	ctx := context.Background()
	s := orderSchema()
	src := &source{rows: map[string][2]string{}}
	for i := 1; i <= 3; i++ {
		src.events = append(src.events, event{key: "k", a: "S", b: fmt.Sprint("S", i)})
	}
	src.events = append(src.events, event{key: "k", gone: true})
	fixed := time.Now()
	cfg := writer.Config{Now: func() time.Time { return fixed }, Switches: sw}
	base := uint64(fixed.UnixMicro())
	old, _ := claimed(t, open(), 1, cfg, s)
	_, err := old.ApplyAt(ctx, &sdk.Changes{Ceiling: base + 1<<20}) // reserves
	must(t, err)
	heir, c := claimed(t, open(), 2, cfg, s)
	if c.Ceiling < base+1<<20 {
		t.Fatalf("the heir is told ceiling %d, the predecessor reserved %d", c.Ceiling, base+1<<20)
	}
	say := func(what string) { told += fmt.Sprintf("%s: %q\n", what, orderRows(t, open())) }
	write := func(w *writer.Writer, from, to int, base uint64, what string) {
		ch := src.changes(t, s, from, to, base, false)
		ch.Ceiling = 0
		_, err := w.ApplyAt(ctx, ch)
		must(t, err)
		say(what)
	}
	write(heir, 0, 3, c.Ceiling+1, "heir wrote S1 S2 S3")
	write(old, 0, 1, base, "paused worker wrote S1")
	write(old, 1, 2, base, "paused worker wrote S2")
	compact()
	say("major compaction")
	write(old, 0, 2, base, "paused worker wrote S1 S2 again")
	write(heir, 3, 4, c.Ceiling+1, "heir removed the row")
	write(old, 1, 2, base, "paused worker wrote S2")
	compact()
	say("major compaction")
	write(old, 0, 2, base, "paused worker wrote S1 S2 again")
	return told
}

// An execution that lost the bookkeeping row stops, and names who has it.
func TestReplacedExecutionStops(t *testing.T) {
	ctx := context.Background()
	for _, sw := range []writer.Switches{{}, {NoRowCheck: true}} {
		m := hbasetest.New()
		s := orderSchema()
		src := &source{rows: map[string][2]string{}, events: []event{{key: "k", b: "1"}}}
		now := time.Now()
		old, _ := claimed(t, m.Client(), 1, writer.Config{Now: func() time.Time { return now }, Switches: sw}, s)
		c := src.changes(t, s, 0, 1, 100, false)
		_, err := old.ApplyAt(ctx, c)
		must(t, err)
		claimed(t, m.Client(), 2, writer.Config{}, s)
		now = now.Add(2 * time.Second)
		_, err = old.ApplyAt(ctx, c)
		if sw.NoRowCheck {
			must(t, err)
			continue
		}
		var f *sdk.Fault
		if !errors.As(err, &f) || f.Code != sdk.CodeFenced || f.Claimant == nil || f.Claimant.Execution != "x2" {
			t.Errorf("got %v, want a fence that names x2", err)
		}
	}
}

// failing refuses rows as a region would that never comes back, or that cannot take
// what they hold.
type failing struct {
	writer.Store
	err error
}

func (f *failing) Batch(ctx context.Context, table string, muts []rpc.Mutation) ([]error, error) {
	errs, err := f.Store.Batch(ctx, table, muts[:len(muts)-1])
	return append(errs, f.err), err
}

// B140: a row that was not written is never taken as written.
func TestRefusedRowsAreReported(t *testing.T) {
	s := orderSchema()
	src := &source{events: []event{{key: "k", b: "1"}, {key: "l", b: "2"}}}
	for _, tt := range []struct {
		err     error
		sw      writer.Switches
		records int
		fails   bool
	}{
		{&rpc.RemoteError{Class: "java.lang.NullPointerException"}, writer.Switches{}, 0, true},
		{&rpc.RemoteError{Class: "org.apache.hadoop.hbase.DoNotRetryIOException", Message: "Cell is too large"}, writer.Switches{}, 1, false},
		{&rpc.RemoteError{Class: "java.lang.NullPointerException"}, writer.Switches{DropFailed: true}, 0, false},
	} {
		w, _ := claimed(t, &failing{hbasetest.New().Client(), tt.err}, 1, writer.Config{Switches: tt.sw}, s)
		records, err := w.ApplyAt(context.Background(), src.changes(t, s, 0, 2, 100, false))
		if len(records) != tt.records || (err != nil) != tt.fails {
			t.Errorf("%v with %+v: %d records, error %v", tt.err, tt.sw, len(records), err)
		}
		if len(records) == 1 && records[0].Index != 1 {
			t.Errorf("record %d is blamed, want 1", records[0].Index)
		}
	}
}

// B138: a row that is deleted and inserted within a millisecond is there.
func TestDeleteAndInsertWithinAMillisecond(t *testing.T) {
	for _, version := range []string{writer.ByPosition, writer.ByEventTime} {
		m := hbasetest.New()
		s := orderSchema()
		src := &source{events: []event{{key: "k", b: "1"}, {key: "k", gone: true}, {key: "k", b: "2"}}}
		w, _ := claimed(t, m.Client(), 1, writer.Config{Version: version}, s)
		c := src.changes(t, s, 0, 3, 100, false)
		for i := range c.Segments {
			c.Segments[i][0].Committed = 1_700_000_000_123_000 + int64(i)
		}
		_, err := w.ApplyAt(context.Background(), c)
		must(t, err)
		if got := orderRows(t, m.Client()); !slices.Equal(got, []string{"0000-k a= b=2"}) {
			t.Errorf("%s: %q", version, got)
		}
	}
}

// Settings that let tombstones go are refused, and named with their remedy.
func TestSettingsAreDemanded(t *testing.T) {
	ctx := context.Background()
	for _, tt := range wrong[1:4] {
		m := hbasetest.New()
		must(t, m.Create(ctx, orderTable(tt.change)))
		w, err := writer.New(writer.Config{Tables: map[string]writer.Rule{"t": {Table: "order"}}}, m.Client())
		must(t, err)
		_, err = w.Prepare(ctx, orderSchema())
		var f *sdk.Fault
		if !errors.As(err, &f) || f.Code != sdk.CodeRefused || !strings.Contains(f.Suggestion, "alter 'order'") {
			t.Errorf("%s: got %v", tt.name, err)
		}
		found, err := w.Check(ctx)
		must(t, err)
		if !slices.ContainsFunc(found, func(f sdk.Finding) bool { return f.Severity == sdk.Error && f.Subject == "order" }) {
			t.Errorf("%s: Check finds %+v", tt.name, found)
		}
	}
}
