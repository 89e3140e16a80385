package reader

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// beside runs a call while the reader reads, and what it reads counts as stored.
func (p *puller) beside(call func(ctx context.Context) error) {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.tb.Context(), 60*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				p.tb.Fatal(err)
			}
			return
		default:
		}
		if !p.next(50*time.Millisecond) && p.err != nil {
			p.tb.Fatal(p.err)
		}
		if !p.last.IsZero() {
			if err := p.r.Durable(ctx, p.last); err != nil {
				p.tb.Fatal(err)
			}
		}
	}
}

// TestOnDemand takes a table while the stream runs, and reads single ranges and
// keys of it; the request outlives the reader.
func TestOnDemand(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			s := stack.Start(t, f.kind, f.options...)
			s.SQL("CREATE DATABASE s; CREATE TABLE s.t (k VARCHAR(10) CHARACTER SET latin1, n INT, v INT, PRIMARY KEY (k, n)); CREATE TABLE s.other (id INT PRIMARY KEY);" +
				"INSERT INTO s.t VALUES ('a', 1, 1), ('A', 2, 2), ('é', 3, 3), ('z', 4, 4), ('z', 5, 5); INSERT INTO s.other VALUES (1);")
			cfg := liveConfig("latest", s.Addr())
			p := pull(t, cfg, nil, nil)
			p.model.loose = true
			s.SQL("INSERT INTO s.t VALUES ('b', 6, 6);")
			p.until("the stream", p.has("s.t", 1))
			p.beside(func(ctx context.Context) error {
				if _, err := p.r.Snapshot(ctx, sdk.SnapshotRequest{Pause: true}); err != nil {
					return err
				}
				st, err := p.r.Snapshot(ctx, sdk.SnapshotRequest{Tables: []string{"s.t"}})
				if err == nil && !slices.Equal(st.Accepted, []string{"s.t"}) {
					err = fmt.Errorf("accepted %v", st.Accepted)
				}
				return err
			})
			if n := len(p.rows("s.t")); n != 1 {
				t.Fatalf("%d rows while paused", n)
			}
			// A new process knows of it.
			m, at, state := p.model, p.last, p.state
			_ = p.r.Close(t.Context())
			p = pull(t, cfg, []sdk.Point{{Position: at}}, state)
			p.model = m
			s.SQL("INSERT INTO s.other VALUES (2);")
			p.until("the stream", p.has("s.other", 1))
			p.beside(func(ctx context.Context) error {
				st, err := p.r.Snapshot(ctx, sdk.SnapshotRequest{})
				if err == nil && (!st.Paused || len(p.rows("s.t")) != 1) {
					err = fmt.Errorf("paused %v after a restart, %d rows", st.Paused, len(p.rows("s.t")))
				}
				if err == nil {
					_, err = p.r.Snapshot(ctx, sdk.SnapshotRequest{Resume: true})
				}
				return err
			})
			if it := p.state["snapshot-paused"]; !it.Deleted {
				t.Errorf("the state says paused after it went on: %+v", it)
			}
			p.until("the rows", p.has("s.t", 6))
			p.until("its end", func() bool { return !p.r.live.weaver.Active() })
			if len(p.rows("s.other")) != 1 {
				t.Error("a table that was not asked for came as well")
			}
			p.beside(func(ctx context.Context) error {
				st, err := p.r.Snapshot(ctx, sdk.SnapshotRequest{})
				if err == nil && (len(st.Tables) != 1 || st.Tables[0].Phase != "done" || st.Tables[0].Rows != 6) {
					err = fmt.Errorf("status %+v", st)
				}
				return err
			})
			p.ranges(t)
		})
	}
}

// ranges reads the table in ranges of two rows, and two keys of it.
func (p *puller) ranges(t *testing.T) {
	var schema *batch.Schema
	for _, s := range p.reg.All() {
		if s.Name() == "s.t" {
			schema = s
		}
	}
	var got []string
	var keys [][]byte
	collect := func(out *batch.Builder) error {
		data, err := out.Finish()
		if err != nil {
			return err
		}
		var b batch.Block
		if err := b.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
			return err
		}
		var e batch.Event
		for i := range b.Len() {
			if err := b.Event(i, &e); err != nil {
				return err
			}
			v, err := e.After.Values(nil)
			if err != nil {
				return err
			}
			got = append(got, fmt.Sprintf("%s%d", v[0].Bytes(), v[1].Int64()))
			keys = append(keys, slices.Clone(e.Key))
		}
		return nil
	}
	rest := sdk.Range{Schema: schema, Rows: 2}
	for rest.Schema != nil {
		p.beside(func(ctx context.Context) error {
			out := batch.NewBuilder(batch.Limits{})
			placed, err := p.r.ReadRange(ctx, rest, out)
			if err != nil {
				return err
			}
			if o, err := p.r.ComparePositions(placed.Low, placed.High); err != nil || o == sdk.After {
				return fmt.Errorf("low %s is %s high %s: %v", placed.Low.Source, o, placed.High.Source, err)
			}
			rest = placed.Rest
			return collect(out)
		})
	}
	// The order is that of latin1_swedish_ci.
	if want := []string{"a1", "A2", "b6", "é3", "z4", "z5"}; !slices.Equal(got, want) {
		t.Errorf("ranges gave %v, want %v", got, want)
	}
	some := [][]byte{keys[3], keys[5], append(slices.Clone(keys[0][:2]), 99, 0, 0, 0)}
	got = nil
	p.beside(func(ctx context.Context) error {
		out := batch.NewBuilder(batch.Limits{})
		if _, err := p.r.ReadKeys(ctx, schema, some, out); err != nil {
			return err
		}
		return collect(out)
	})
	slices.Sort(got)
	if want := []string{"z5", "é3"}; !slices.Equal(got, want) {
		t.Errorf("keys gave %v, want %v", got, want)
	}
}
