package delivery_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance/reference"
	"github.com/datalink-go/datalink/sdk/delivery"
)

// slow is a target that takes long over one row of table t.
type slow struct {
	*reference.Transactional
	key string
	d   time.Duration
}

type slowTx struct {
	sdk.Tx
	w *slow
}

func (w *slow) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	tx, err := w.Transactional.Begin(ctx, lanes)
	return slowTx{tx, w}, err
}

func (t slowTx) Apply(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	for _, seg := range c.Segments {
		for i := range seg {
			if seg[i].Schema.Table == "t" && fmt.Sprint(seg[i].Key[0]) == t.w.key {
				select {
				case <-time.After(t.w.d):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		}
	}
	return t.Tx.Apply(ctx, c)
}

// laneKeys returns keys of the table's rows that lane 0 and lane 1 of two have.
func laneKeys(t *testing.T, sc *batch.Schema) (keys [2][]int) {
	s := newSource(t)
	for i := range 12 {
		s.tx(nil, s.insert(sc, i, "a", "x"))
	}
	r := s.block()
	r.Lanes = nil
	lanes := map[int32][]string{}
	if _, err := deliver(t, lanesOf{reference.NewTransactional(reference.NewDatabase()), lanes}, delivery.Config{Lanes: 2}, execution(), r); err != nil {
		t.Fatal(err)
	}
	for lane := range keys {
		for _, text := range lanes[int32(lane)] {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			keys[lane] = append(keys[lane], n)
		}
	}
	return keys
}

// A lane whose batch ends inside of a transaction, since the next change waits for
// another lane, stands beyond places that all lanes have reached. None of those may
// be stored over what the lane has when it is idle for a second, neither in the run
// that got there nor in the one after a crash.
func TestIdleLaneDoesNotGoBackInATransaction(t *testing.T) {
	ofT, ofU := laneKeys(t, keyed(1, "t")), laneKeys(t, keyed(2, "u"))
	a, b, c := ofT[0][0], ofT[1][0], ofT[0][1]
	synctest.Test(t, func(t *testing.T) {
		sc, other := keyed(1, "t"), keyed(2, "u")
		sc.Uniques = []batch.Index{{Name: "v", Columns: []int{1}}}
		db := reference.NewDatabase()
		w := &slow{reference.NewTransactional(db), fmt.Sprint(b), 5 * time.Second}
		start := func(ex sdk.Execution) (p *pipe, done chan error, cancel func()) {
			ctx, cancel := context.WithCancel(t.Context())
			e, err := delivery.New(w, delivery.Config{Lanes: 2})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Claim(ctx, ex); err != nil {
				t.Fatal(err)
			}
			p, done = newPipe(ctx), make(chan error, 1)
			go func() { done <- e.Run(ctx, p) }()
			return p, done, cancel
		}
		swap := func(s *source, covers []batch.Cover) {
			s.tx(covers, s.del(sc, b, "u", "x"), s.insert(other, ofU[0][1], "q", "x"), s.insert(sc, c, "u", "x"))
		}

		p, done, cancel := start(execution())
		s := newSource(t)
		s.tx(nil, s.insert(sc, a, "first", "x"), s.insert(other, ofU[0][0], "first", "x"))
		swap(s, nil)
		r := s.block()
		r.Lanes = nil
		p.in <- r
		time.Sleep(3 * time.Second)
		synctest.Wait()
		cancel()
		<-done
		points := db.History()
		at := points[len(points)-1].Position
		if string(at.Source) != "1" || at.Ordinal != 2 {
			t.Fatalf("the lane stands at %s+%d, want 1+2: %+v", at.Source, at.Ordinal, points)
		}

		ex := execution()
		ex.Epoch, ex.ID = 2, "x2"
		p, done, cancel = start(ex)
		defer cancel()
		s = newSource(t)
		s.at, s.txs = 1, 0
		swap(s, []batch.Cover{{Point: 0, Upto: 2}})
		r = s.block()
		r.Lanes = []int64{0, 1}
		p.in <- r
		close(p.in)
		if err := <-done; err != nil {
			t.Error(err)
		}
		onlyForward(t, db)
		if n := len(db.Rows("t")) + len(db.Rows("u")); n != 4 {
			t.Errorf("rows %v and %v", db.Rows("t"), db.Rows("u"))
		}
	})
}

// The same without a crash: a large transaction is split where all lanes stand, and a
// lane's batch ends further on, where its next change waits.
func TestIdleLaneDoesNotGoBackToASplit(t *testing.T) {
	of := laneKeys(t, keyed(1, "t"))
	synctest.Test(t, func(t *testing.T) {
		sc := keyed(1, "t")
		sc.Uniques = []batch.Index{{Name: "v", Columns: []int{1}}}
		db := reference.NewDatabase()
		w := &slow{reference.NewTransactional(db), fmt.Sprint(of[1][0]), 5 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e, err := delivery.New(w, delivery.Config{Lanes: 2, SplitRecords: 3})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Claim(ctx, execution()); err != nil {
			t.Fatal(err)
		}
		p, done := newPipe(ctx), make(chan error, 1)
		go func() { done <- e.Run(ctx, p) }()

		s := newSource(t)
		s.must(s.b.BeginTx(batch.Tx{Begins: true, ID: "tx"}))
		for _, change := range []func(){
			s.insert(sc, of[0][0], "first", "x"),
			s.del(sc, of[1][0], "u", "x"),
			s.insert(sc, of[1][1], "second", "x"),
			s.insert(sc, of[1][2], "third", "x"),
			s.insert(sc, of[0][1], "u", "x"),
		} {
			change()
		}
		s.must(s.b.EndTx(false, []byte("0"), nil))
		r := s.block()
		r.Lanes = nil
		p.in <- r
		time.Sleep(8 * time.Second) // the other lane is done: the change may go, and the rest has not come
		synctest.Wait()
		s.must(s.b.BeginTx(batch.Tx{ID: "tx", Ordinal: 5}))
		s.at++
		s.must(s.b.EndTx(true, nil, []byte("1")))
		s.txs++
		p.in <- s.block()
		close(p.in)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if h := db.History(); len(h) == 0 || h[0].Position.Ordinal != 4 {
			t.Errorf("no batch ended before the change that waits: %+v", h)
		}
		onlyForward(t, db)
		if rows := db.Rows("t"); len(rows) != 4 {
			t.Errorf("rows %v", rows)
		}
	})
}

// onlyForward checks the positions that were stored. Their bytes sort as they follow.
func onlyForward(t *testing.T, db *reference.Database) {
	t.Helper()
	last := map[int32]sdk.Position{}
	for _, h := range db.History() {
		q, p := last[h.Lane], h.Position
		if cmp.Or(bytes.Compare(q.Source, p.Source), cmp.Compare(q.Ordinal, p.Ordinal)) > 0 {
			t.Errorf("lane %d went back from %s+%d to %s+%d", h.Lane, q.Source, q.Ordinal, p.Source, p.Ordinal)
		}
		last[h.Lane] = p
	}
}
