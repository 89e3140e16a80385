package delivery_test

import (
	"context"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance/reference"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

// A source that has nothing to say but that it is there: what came before is
// acknowledged, and the stream ends.
func TestOnlyStateAndHeartbeats(t *testing.T) {
	for _, tt := range []struct {
		lanes int32
		state bool
	}{{1, true}, {2, true}, {1, false}, {2, false}} {
		lanes := tt.lanes
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		e, err := delivery.New(reference.NewTransactional(reference.NewDatabase()), delivery.Config{Lanes: lanes})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Claim(ctx, execution()); err != nil {
			t.Fatal(err)
		}
		p := newPipe(ctx)
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, p) }()
		s := newSource(t)
		state := func() { s.must(s.b.StateItem(&batch.StateItem{Key: "k", Version: 1, Value: []byte("v")})) }
		if tt.state {
			s.must(s.b.BeginTx(batch.Tx{Begins: true}))
			state()
			s.at++
			s.must(s.b.EndTx(true, nil, []byte("1")))
			p.in <- s.block()
		}
		for range 2 {
			s.must(s.b.BeginTx(batch.Tx{Begins: true}))
			s.must(s.b.Heartbeat(1))
			s.must(s.b.EndTx(true, nil, nil))
			p.in <- s.block()
		}
		acked := make(chan struct{})
		go func() {
			p.until(t, "ack of all", func(r *wire.WriteReply) bool { return r.Acked == s.seq })
			close(acked)
		}()
		close(p.in)
		select {
		case <-acked:
		case <-ctx.Done():
			t.Fatalf("%+v: not acknowledged", tt)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// A sign of life between transactions leaves the place known: a schema change may
// follow, and lanes need not be brought together.
func TestSchemaChangeAfterASignOfLife(t *testing.T) {
	for _, lanes := range []int32{1, 2} {
		s, sc := newSource(t), keyed(1, "t")
		s.tx(nil, s.insert(sc, 1, "a", "x"))
		s.must(s.b.BeginTx(batch.Tx{Begins: true}))
		s.must(s.b.Heartbeat(1))
		s.must(s.b.EndTx(true, nil, nil))
		s.tx(nil, func() {
			s.must(s.b.Change(&batch.Change{Kind: batch.DDLAddColumn, Table: "t", Statement: "alter"}))
		})
		db := reference.NewDatabase()
		if _, err := deliver(t, reference.NewTransactional(db), delivery.Config{Lanes: lanes}, execution(), s.block()); err != nil {
			t.Errorf("%d lanes: %v", lanes, err)
		}
		if n := len(db.Statements()); n != 1 {
			t.Errorf("%d lanes: %d schema changes", lanes, n)
		}
	}
}
