package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance/reference"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

func TestIdleLanesAdvanceOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		db := reference.NewDatabase()
		e, err := delivery.New(reference.NewTransactional(db), delivery.Config{Lanes: 4})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Claim(ctx, execution()); err != nil {
			t.Fatal(err)
		}
		p := newPipe(ctx)
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, p) }()
		s, sc := newSource(t), keyed(1, "t")
		s.tx(nil, s.insert(sc, 1, "a", "x"))
		r := s.block()
		r.Lanes = nil
		p.in <- r
		synctest.Wait()
		if n := db.Commits(); n != 1 {
			t.Errorf("%d target transactions for one row, before a second is over", n)
		}
		if a := p.last(); a.Acked != 1 {
			t.Errorf("last reply %+v: what no other lane has a part in is durable", a)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		var at []string
		for _, x := range p.last().Points {
			at = append(at, string(x.Position.Source))
		}
		if !slices.Equal(at, []string{"1", "1", "1", "1"}) || db.Commits() != 4 {
			t.Errorf("positions %v after %d target transactions", at, db.Commits())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := db.Commits(); n != 4 {
			t.Errorf("%d target transactions although nothing came", n)
		}
		close(p.in)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestDrainBringsLanesToOnePosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sc := newSource(t), keyed(1, "t")
		for i := range 9 {
			s.tx(nil, s.insert(sc, i, "a", "x"))
		}
		r := s.block()
		r.Lanes, r.Drain = nil, true
		db := reference.NewDatabase()
		replies, err := deliver(t, reference.NewTransactional(db), delivery.Config{Lanes: 4}, execution(), r)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(replies, func(r *wire.WriteReply) bool { return r.Acked == 1 })
		if i < 0 {
			t.Fatal("no ack")
		}
		for _, p := range replies[i].Points {
			if string(p.Position.Source) != "9" {
				t.Errorf("lane %d is at %s when the drain is acknowledged", p.Lane, p.Position.Source)
			}
		}
	})
}

// clock has a boot time of its own.
type clock struct{ boot int64 }

func (clock) Now() time.Time                         { return time.Now() }
func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (c clock) Boottime() int64                      { return c.boot }

func TestNothingIsWrittenAfterTheDeadline(t *testing.T) {
	for _, tt := range []struct {
		deadline int64
		rows     int
	}{{999_999, 0}, {2_000_000, 1}, {0, 1}} {
		s, sc := newSource(t), keyed(1, "t")
		s.tx(nil, s.insert(sc, 1, "a", "x"))
		r := s.block()
		r.DeadlineMicros = tt.deadline
		store := reference.NewRows()
		_, err := deliver(t, reference.NewIdempotent(store), delivery.Config{Clock: clock{1_000_000}}, execution(), r)
		if late := tt.rows == 0; late != errors.Is(err, sdk.Faultf(sdk.CodeDeadline, "")) {
			t.Errorf("deadline %d: %v", tt.deadline, err)
		}
		if got := len(store.Cells(sc)); got != tt.rows {
			t.Errorf("deadline %d: %d rows, want %d", tt.deadline, got, tt.rows)
		}
	}
}

// versions notes the versions of changes.
type versions struct {
	*reference.Versioned
	got []string
}

func (v *versions) ApplyAt(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	for _, seg := range c.Segments {
		for i := range seg {
			v.got = append(v.got, fmt.Sprintf("%s %d@%d<%d", seg[i].Op, seg[i].Key[0], seg[i].Version, c.Ceiling))
		}
	}
	return v.Versioned.ApplyAt(ctx, c)
}

func TestMergedChangesHaveTheLastVersion(t *testing.T) {
	s, sc := newSource(t), keyed(1, "t")
	s.tx(nil, s.insert(sc, 1, "a", "x"), s.insert(sc, 2, "a", "x"), s.update(sc, vals(1, "a", "x"), vals(1, "b", "x")))
	s.tx(nil, s.del(sc, 2, "a", "x"))
	r := s.block()
	r.VersionBase, r.Ceiling = 100, 500
	v := &versions{Versioned: reference.NewVersioned(reference.NewCells())}
	if _, err := deliver(t, v, delivery.Config{}, execution(), r); err != nil {
		t.Fatal(err)
	}
	if want := []string{"upsert 1@102<500", "remove 2@103<500"}; !slices.Equal(v.got, want) {
		t.Errorf("got %v, want %v", v.got, want)
	}
}

// Which lane a row belongs to outlives a process: this must not change.
func TestLanesOfRowsAreFixed(t *testing.T) {
	s, sc := newSource(t), keyed(1, "t")
	for i := range 12 {
		s.tx(nil, s.insert(sc, i, "a", "x"))
	}
	r := s.block()
	r.Lanes = nil
	db := reference.NewDatabase()
	lanes := map[int32][]string{}
	w := lanesOf{reference.NewTransactional(db), lanes}
	if _, err := deliver(t, w, delivery.Config{Lanes: 3}, execution(), r); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(lanes[0], lanes[1], lanes[2])
	if want := goldenLanes; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

type lanesOf struct {
	*reference.Transactional
	keys map[int32][]string
}

type lanesOfTx struct {
	sdk.Tx
	keys map[int32][]string
}

func (w lanesOf) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	tx, err := w.Transactional.Begin(ctx, lanes)
	return lanesOfTx{tx, w.keys}, err
}

func (t lanesOfTx) Apply(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	for _, seg := range c.Segments {
		for i := range seg {
			lanesMu.Lock()
			t.keys[c.Lane] = append(t.keys[c.Lane], fmt.Sprint(seg[i].Key[0]))
			lanesMu.Unlock()
		}
	}
	return t.Tx.Apply(ctx, c)
}

// A snapshot row and then a change of the row, and a range that removes what the
// snapshot did not have.
func TestRangeRemovesWhatItsRowsLack(t *testing.T) {
	for lanes := range int32(3) {
		s, sc := newSource(t), keyed(1, "t")
		s.tx(nil, s.insert(sc, 7, "old", "x"), s.insert(sc, 1, "old", "x"))
		s.tx(nil, s.row(batch.Read, sc, nil, vals(1, "a", "x")), s.row(batch.Read, sc, nil, vals(2, "b", "x")))
		s.tx(nil, s.update(sc, vals(2, "b", "x"), vals(2, "c", "x")), s.insert(sc, 3, "n", "x"))
		s.tx(nil, func() { s.must(s.b.KeyRange(sc, &batch.KeyRange{Last: true})) })
		r := s.block()
		r.Lanes = nil
		db := reference.NewDatabase()
		ex := execution()
		ex.Lanes = lanes
		if _, err := deliver(t, reference.NewTransactional(db), delivery.Config{}, ex, r); err != nil {
			t.Fatal(err)
		}
		if got := db.Rows("t"); len(got) != 3 {
			t.Errorf("%d lanes: rows %v", lanes, got)
		}
	}
}

var lanesMu sync.Mutex

const goldenLanes = "[0 5 7 11] [2 9] [1 3 4 6 8 10]"
