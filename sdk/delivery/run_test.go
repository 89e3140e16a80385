package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance/reference"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

func lastReply(replies []*wire.WriteReply) *wire.WriteReply {
	if len(replies) == 0 {
		return &wire.WriteReply{}
	}
	return replies[len(replies)-1]
}

func TestWaitingTransactionsBecomeOne(t *testing.T) {
	s, sc := newSource(t), keyed(1, "t")
	var reqs []*wire.WriteRequest
	for i := range 20 {
		for j := range 5 {
			s.tx(nil, s.insert(sc, i*5+j, "v", "w"))
		}
		reqs = append(reqs, s.block())
	}
	db := reference.NewDatabase()
	replies, err := deliver(t, reference.NewTransactional(db), delivery.Config{}, execution(), reqs...)
	if err != nil {
		t.Fatal(err)
	}
	r := lastReply(replies)
	if r.Accepted != 20 || r.Acked != 20 || len(r.Points) != 1 || string(r.Points[0].Position.Source) != "100" {
		t.Errorf("last reply %+v", r)
	}
	if n := db.Commits(); n > 20 {
		t.Errorf("%d target transactions for 100 of the source", n)
	}
	if n := len(db.Rows("t")); n != 100 {
		t.Errorf("%d rows", n)
	}
}

func TestSkipByCoverage(t *testing.T) {
	sc := keyed(1, "k")
	sc.Key, sc.PrimaryKey = nil, false
	db := reference.NewDatabase()
	s := newSource(t)
	s.tx(nil, s.insert(sc, 1, "a", "x"), s.insert(sc, 2, "a", "x"))
	if _, err := deliver(t, reference.NewTransactional(db), delivery.Config{}, execution(), s.block()); err != nil {
		t.Fatal(err)
	}
	for _, off := range []bool{false, true} {
		state := db.Copy()
		s := newSource(t)
		s.tx([]batch.Cover{{Point: 0}}, s.insert(sc, 1, "a", "x"), s.insert(sc, 2, "a", "x"))
		s.tx([]batch.Cover{{Point: 0, Upto: 1}}, s.insert(sc, 3, "a", "x"), s.insert(sc, 4, "a", "x"))
		ex := execution()
		ex.Epoch, ex.ID = 2, "x2"
		replies, err := deliver(t, reference.NewTransactional(db), delivery.Config{Switches: delivery.Switches{SkipOff: off}}, ex, s.block())
		if err != nil {
			t.Fatal(err)
		}
		want := 3
		if off {
			want = 6
		}
		if got := db.Rows("k"); len(got) != want {
			t.Errorf("skip off %t: %d rows, want %d: %v", off, len(got), want, got)
		}
		skipped := uint64(0)
		for _, r := range replies {
			skipped += r.Skipped
		}
		if skipped != 3 && !off {
			t.Errorf("%d changes skipped", skipped)
		}
		db.Restore(state)
	}
}

func TestCoveredPartNeverMovesThePositionBack(t *testing.T) {
	sc := keyed(1, "t")
	db := reference.NewDatabase()
	s := newSource(t)
	for i := range 5 {
		s.tx(nil, s.insert(sc, i, "a", "x"))
	}
	if _, err := deliver(t, reference.NewTransactional(db), delivery.Config{}, execution(), s.block()); err != nil {
		t.Fatal(err)
	}
	s = newSource(t)
	for i := range 3 {
		s.tx([]batch.Cover{{Point: 0}}, s.insert(sc, i, "a", "x"))
	}
	ex := execution()
	ex.Epoch, ex.ID = 2, "x2"
	if _, err := deliver(t, reference.NewTransactional(db), delivery.Config{}, ex, s.block()); err != nil {
		t.Fatal(err)
	}
	h := db.History()
	if got := string(h[len(h)-1].Position.Source); got != "5" {
		t.Errorf("position %s, want 5", got)
	}
}

func TestLargeTransactionIsSplitByOrdinal(t *testing.T) {
	s, sc := newSource(t), keyed(1, "t")
	var events []func()
	for i := range 25 {
		events = append(events, s.insert(sc, i, "a", "x"))
	}
	s.tx(nil, s.insert(sc, 100, "a", "x"))
	s.tx(nil, events...)
	db := reference.NewDatabase()
	if _, err := deliver(t, reference.NewTransactional(db), delivery.Config{Records: 5, SplitRecords: 10}, execution(), s.block()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range db.History() {
		got = append(got, fmt.Sprintf("%s+%d", h.Position.Source, h.Position.Ordinal))
	}
	if want := "1+0 1+10 1+20 2+0"; strings.Join(got, " ") != want {
		t.Errorf("positions %v, want %s", got, want)
	}
}

func TestSplitByRequest(t *testing.T) {
	s, sc := newSource(t), keyed(1, "t")
	db := reference.NewDatabase()
	e, err := delivery.New(reference.NewTransactional(db), delivery.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := e.Claim(ctx, execution()); err != nil {
		t.Fatal(err)
	}
	p := newPipe(ctx)
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, p) }()
	s.must(s.b.BeginTx(batch.Tx{Begins: true}))
	s.insert(sc, 1, "a", "x")()
	s.must(s.b.EndTx(false, []byte("0"), nil))
	r := s.block()
	r.Split = true
	p.in <- r
	got := p.until(t, "ack of 1", func(r *wire.WriteReply) bool { return r.Acked == 1 })
	if len(got.Points) != 1 || got.Points[0].Position.Ordinal != 1 {
		t.Errorf("points %+v", got.Points)
	}
	s.must(s.b.BeginTx(batch.Tx{Ordinal: 1, Start: []byte("0")}))
	s.insert(sc, 2, "a", "x")()
	s.at++
	s.must(s.b.EndTx(true, nil, []byte("1")))
	p.in <- s.block()
	p.until(t, "ack of 2", func(r *wire.WriteReply) bool { return r.Acked == 2 })
	close(p.in)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := len(db.Rows("t")); n != 2 {
		t.Errorf("%d rows", n)
	}
}

func TestRefusedRecordsAndTheNextAttempt(t *testing.T) {
	sc := keyed(1, "t")
	sc.Uniques = []batch.Index{{Name: "v", Columns: []int{1}}}
	db := reference.NewDatabase()
	e, err := delivery.New(reference.NewTransactional(db), delivery.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := e.Claim(ctx, execution()); err != nil {
		t.Fatal(err)
	}
	p := newPipe(ctx)
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, p) }()

	s := newSource(t)
	s.tx(nil, s.insert(sc, 1, "a", "x"))
	p.in <- s.block()
	p.until(t, "ack of 1", func(r *wire.WriteReply) bool { return r.Acked == 1 })
	// Row 3 takes a value that row 1 still has: the sides have drifted apart.
	s.tx(nil, s.insert(sc, 2, "b", "x"), s.insert(sc, 3, "q", "x"), s.update(sc, vals(3, "q", "x"), vals(3, "a", "x")))
	second := s.block()
	s.tx(nil, s.insert(sc, 4, "d", "x"))
	third := s.block()
	p.in <- second
	p.in <- third
	f := p.until(t, "records", func(r *wire.WriteReply) bool { return len(r.Records) > 0 })
	if f.FailedSeq != 2 || f.Attempt != 0 || f.Acked != 1 || len(f.Records) != 2 || f.Records[0].Index != 1 || f.Records[1].Index != 2 ||
		f.Records[0].Fault.Code != sdk.CodeConflict {
		t.Fatalf("refusal %+v", f)
	}
	s.seq, s.at = 1, 1
	s.tx(nil, s.insert(sc, 2, "b", "x"), func() { s.must(s.b.Heartbeat(0)) }, func() { s.must(s.b.Heartbeat(0)) })
	again := s.block()
	again.Attempt, again.SetAside = 1, []sdk.DeadLetter{{Number: 1, Table: "t"}}
	third.Attempt = 1
	p.in <- again
	p.in <- third
	p.until(t, "ack of 3", func(r *wire.WriteReply) bool { return r.Acked == 3 && r.Attempt == 1 })
	close(p.in)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := db.Rows("t"); len(got) != 3 {
		t.Errorf("rows %v", got)
	}
	c, err := reference.NewTransactional(db).Claim(ctx, execution())
	if err != nil || len(c.DeadLetters) != 1 {
		t.Errorf("dead letters %v, %v", c.DeadLetters, err)
	}
}

func TestLostCommitsAndDeadlocks(t *testing.T) {
	tests := []struct {
		name  string
		step  string
		err   error
		wants error
	}{
		{"commit lost without effect", "commit", sdk.ErrCommitUnknown, nil},
		{"commit lost with effect", "committed", sdk.ErrCommitUnknown, nil},
		{"deadlock in apply", "apply", sdk.Faultf(sdk.CodeUnavailable, "deadlock").Retry(), nil},
		{"busy at begin", "begin", sdk.Faultf(sdk.CodeUnavailable, "busy").Retry(), nil},
		{"fenced", "fence", sdk.ErrFenced, sdk.ErrFenced},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, sc := newSource(t), keyed(1, "k")
			sc.Key, sc.PrimaryKey = nil, false
			s.tx(nil, s.insert(sc, 1, "a", "x"))
			db := reference.NewDatabase()
			n := 0
			db.Hook = func(step string, _ []int32) error {
				if step == tt.step {
					if n++; n <= 2 {
						return tt.err
					}
				}
				return nil
			}
			replies, err := deliver(t, reference.NewTransactional(db), delivery.Config{Backoff: time.Microsecond}, execution(), s.block())
			if !errors.Is(err, tt.wants) {
				t.Fatalf("got %v, want %v", err, tt.wants)
			}
			rows := 1
			if tt.wants != nil {
				rows = 0
				if f := lastReply(replies).Fault; f == nil || f.Code != sdk.CodeFenced {
					t.Errorf("last reply %+v", lastReply(replies))
				}
			}
			if got := db.Rows("k"); len(got) != rows {
				t.Errorf("rows %v", got)
			}
		})
	}
}

func TestStateGoesWithThePosition(t *testing.T) {
	s, sc := newSource(t), keyed(1, "t")
	s.tx(nil, s.insert(sc, 1, "a", "x"), func() { s.must(s.b.StateItem(&batch.StateItem{Key: "chunk", Version: 1, Value: []byte("5")})) })
	db := reference.NewDatabase()
	if _, err := deliver(t, reference.NewTransactional(db), delivery.Config{}, execution(), s.block()); err != nil {
		t.Fatal(err)
	}
	c, err := reference.NewTransactional(db).Claim(context.Background(), execution())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]batch.StateItem{{Key: "chunk", Version: 1, Value: []byte("5")}}, c.State); d != "" || db.Commits() != 1 {
		t.Errorf("state after %d commits (-want +got):\n%s", db.Commits(), d)
	}
}

func TestSchemaChangesStandAlone(t *testing.T) {
	for lanes := range int32(3) {
		ex := execution()
		ex.Lanes = lanes
		s, v1, v2 := newSource(t), keyed(1, "t"), keyed(2, "t")
		v2.Columns = append(v2.Columns, batch.Column{Name: "z", Type: batch.Int32, Flags: batch.Nullable})
		s.tx(nil, s.insert(v1, 1, "a", "x"))
		s.tx(nil, func() { s.must(s.b.Change(&batch.Change{Kind: batch.DDLAddColumn, Table: "t", Statement: "alter"})) })
		s.tx(nil, s.insert(v2, 2, "a", "x", 7))
		db := reference.NewDatabase()
		var steps []string
		w := &preparing{Transactional: reference.NewTransactional(db), steps: &steps}
		db.Hook = func(step string, l []int32) error {
			if step == "committed" {
				steps = append(steps, fmt.Sprint("commit ", len(l)))
			}
			return nil
		}
		req := s.block()
		req.Lanes = nil
		if _, err := deliver(t, w, delivery.Config{}, ex, req); err != nil {
			t.Fatal(err)
		}
		n := max(int(lanes), 1)
		ddl := slices.Index(steps, "prepare 2")
		if !slices.Equal(db.Statements(), []string{"alter"}) || ddl < 2 || steps[ddl-1] != fmt.Sprint("commit ", n) {
			t.Errorf("%d lanes: steps %v, statements %v", lanes, steps, db.Statements())
		}
		if len(db.Rows("t")) != 2 {
			t.Errorf("rows %v", db.Rows("t"))
		}
	}
}

// TestNothingIsPreparedPastARefusal has a record refused before a schema change:
// the layout after it must not reach the target before the change does.
func TestNothingIsPreparedPastARefusal(t *testing.T) {
	for lanes := range int32(3) {
		ex := execution()
		ex.Lanes = lanes
		v1, v2 := keyed(1, "t"), keyed(2, "t")
		v1.Uniques = []batch.Index{{Name: "v", Columns: []int{1}}}
		v2.Columns = append(v2.Columns, batch.Column{Name: "z", Type: batch.Int32, Flags: batch.Nullable})
		var steps []string
		db := reference.NewDatabase()
		s := newSource(t)
		s.tx(nil, s.insert(v1, 1, "a", "x"))
		first := s.block()
		s.tx(nil, s.insert(v1, 2, "a", "x"))
		s.tx(nil, func() { s.must(s.b.Change(&batch.Change{Kind: batch.DDLAddColumn, Table: "t", Statement: "alter"})) })
		s.tx(nil, s.insert(v2, 3, "c", "x", 7))
		first.Lanes = nil
		replies, err := deliver(t, &preparing{reference.NewTransactional(db), &steps}, delivery.Config{}, ex, first, s.block())
		refused := slices.ContainsFunc(replies, func(r *wire.WriteReply) bool { return r.FailedSeq == 2 && len(r.Records) == 1 })
		if err != nil || !refused || len(db.Statements()) > 0 || slices.Contains(steps, "prepare 2") {
			t.Errorf("%d lanes: %v, refused %v, steps %v, statements %v", lanes, err, refused, steps, db.Statements())
		}
	}
}

// TestOneLargeRecord has a record above the limit at the end of a block: it is
// durable before the rest of its transaction comes, for which the window may
// have no room.
func TestOneLargeRecord(t *testing.T) {
	for lanes := range int32(3) {
		ex := execution()
		ex.Lanes = lanes
		db := reference.NewDatabase()
		e, err := delivery.New(reference.NewTransactional(db), delivery.Config{SplitBytes: 1000})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := e.Claim(ctx, ex); err != nil {
			t.Fatal(err)
		}
		p := newPipe(ctx)
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, p) }()
		s, sc := newSource(t), keyed(1, "t")
		s.must(s.b.BeginTx(batch.Tx{Begins: true, ID: "tx0"}))
		s.insert(sc, 1, strings.Repeat("x", 5000), "x")()
		s.must(s.b.EndTx(false, []byte("0"), nil))
		first := s.block()
		first.Lanes = nil
		p.in <- first
		p.until(t, "ack of the large record", func(r *wire.WriteReply) bool { return r.Acked == 1 })
		s.must(s.b.BeginTx(batch.Tx{ID: "tx0", Ordinal: 1}))
		s.insert(sc, 2, "b", "x")()
		s.at++
		s.must(s.b.EndTx(true, nil, []byte("1")))
		p.in <- s.block()
		close(p.in)
		if err := <-done; err != nil || len(db.Rows("t")) != 2 {
			t.Errorf("%d lanes: %v, rows %d", lanes, err, len(db.Rows("t")))
		}
	}
}

type preparing struct {
	*reference.Transactional
	steps *[]string
}

func (p *preparing) Prepare(ctx context.Context, s *batch.Schema) (sdk.Constraints, error) {
	*p.steps = append(*p.steps, fmt.Sprint("prepare ", s.ID))
	return p.Transactional.Prepare(ctx, s)
}

// A transaction that has not ended is acknowledged block by block in any number of
// lanes, also where most of them get few of its rows: who waits for its end would
// wait for ever where it is larger than the host's window.
func TestLargeTransactionPassesAllLanes(t *testing.T) {
	for _, lanes := range []int32{1, 2, 4, 16} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			s, sc := newSource(t), keyed(1, "t")
			db := reference.NewDatabase()
			e, err := delivery.New(reference.NewTransactional(db), delivery.Config{Lanes: lanes, SplitRecords: 20})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if _, err := e.Claim(ctx, execution()); err != nil {
				t.Fatal(err)
			}
			p := newPipe(ctx)
			done := make(chan error, 1)
			go func() { done <- e.Run(ctx, p) }()
			const blocks, each = 12, 10
			for b := range blocks {
				tx := batch.Tx{Begins: b == 0, Ordinal: uint64(b * each)}
				if b > 0 {
					tx.Start = []byte("0")
				}
				s.must(s.b.BeginTx(tx))
				for i := range each {
					s.insert(sc, b*each+i, "a", "x")()
				}
				if b < blocks-1 {
					s.must(s.b.EndTx(false, []byte("0"), nil))
				} else {
					s.at++
					s.must(s.b.EndTx(true, nil, []byte("1")))
				}
				r := s.block()
				if b == 0 {
					r.Lanes = nil
					for i := range lanes {
						r.Lanes = append(r.Lanes, int64(i))
					}
				}
				p.in <- r
				if want := uint64(b - 2); b > 2 { // as a window of three blocks would have it
					p.until(t, fmt.Sprintf("ack of %d", want), func(r *wire.WriteReply) bool { return r.Acked >= want })
				}
			}
			close(p.in)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if n := len(db.Rows("t")); n != blocks*each {
				t.Errorf("%d rows, want %d", n, blocks*each)
			}
		})
	}
}
