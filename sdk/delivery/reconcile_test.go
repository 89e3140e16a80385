package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance/reference"
	"github.com/datalink-go/datalink/sdk/delivery"
)

// A chunk whose rows came before the writer was there, keys that the stream
// changed meanwhile, and a target that cannot compare bounds.
func TestRangesOfChunks(t *testing.T) {
	key := func(n int) []byte { return []byte{byte(n), 0, 0, 0} }
	for _, c := range []struct {
		name      string
		unordered bool
		begins    bool // the chunk's transaction is seen from its beginning
		keys      []int
		kept      []int
		lo        int
		want      string
	}{
		{"seen from the beginning", false, true, []int{1, 2, 3}, nil, 0, "[1 2]"}, // 3 was left out on the way
		{"seen in part", false, false, []int{1, 2, 3}, nil, 0, "[1 2 3]"},
		{"changed meanwhile", false, true, []int{1, 2}, []int{3}, 0, "[1 2 3]"},
		{"joined", true, true, []int{1, 2}, nil, 0, "[1 2]"},
		{"joined without the first", true, true, []int{1, 2}, nil, 1, "[1 2 3 9]"},
	} {
		for lanes := range int32(3) {
			t.Run(fmt.Sprintf("%s, %d lanes", c.name, lanes), func(t *testing.T) {
				s, sc := newSource(t), keyed(1, "t")
				s.tx(nil, s.insert(sc, 9, "old", "x"), s.insert(sc, 3, "old", "x"))
				r := &batch.KeyRange{Last: true, Hi: key(9)}
				if c.lo > 0 {
					r.Lo = key(c.lo - 1)
				}
				for _, k := range c.keys {
					r.Keys = append(r.Keys, key(k))
				}
				for _, k := range c.kept {
					r.Kept = append(r.Kept, key(k))
				}
				s.tx(nil, s.row(batch.Read, sc, nil, vals(1, "a", "x")), s.row(batch.Read, sc, nil, vals(2, "b", "x")),
					func() { s.must(s.b.KeyRange(sc, r)) })
				q := s.block()
				q.Lanes = nil
				if !c.begins {
					q.Block = cutBegin(t, q.Block)
				}
				db := reference.NewDatabase()
				ex := execution()
				ex.Lanes = lanes
				if _, err := deliver(t, unordered{reference.NewTransactional(db), c.unordered}, delivery.Config{}, ex, q); err != nil {
					t.Fatal(err)
				}
				var got []int
				for _, row := range db.Rows("t") {
					var n int
					if _, err := fmt.Sscanf(row, "id=%02d", &n); err != nil {
						t.Fatal(row, err)
					}
					got = append(got, n)
				}
				slices.Sort(got)
				if fmt.Sprint(got) != c.want {
					t.Errorf("rows %v, want %s (%v)", got, c.want, db.Rows("t"))
				}
			})
		}
	}
}

// A target that cannot compare bounds is told of all ranges at once. What the
// stream adds between two of them, to the one that was read already, is in none.
func TestChangesBetweenJoinedRanges(t *testing.T) {
	key := func(n int) []byte { return []byte{byte(n), 0, 0, 0} }
	for _, off := range []bool{false, true} {
		for lanes := range int32(3) {
			for _, seen := range []bool{true, false} {
				t.Run(fmt.Sprintf("watch off %v, %d lanes, last range seen from the beginning %v", off, lanes, seen), func(t *testing.T) {
					s, sc := newSource(t), keyed(1, "t")
					s.tx(nil, s.insert(sc, 9, "old", "x"))
					s.tx(nil, s.row(batch.Read, sc, nil, vals(1, "a", "x")), func() {
						s.must(s.b.KeyRange(sc, &batch.KeyRange{Hi: key(5), Keys: [][]byte{key(1)}}))
					})
					s.tx(nil, s.insert(sc, 3, "new", "x"))
					s.tx(nil, s.row(batch.Read, sc, nil, vals(6, "b", "x")), func() {
						s.must(s.b.KeyRange(sc, &batch.KeyRange{Lo: key(5), Last: true, Keys: [][]byte{key(6)}}))
					})
					q := s.block()
					q.Lanes = nil
					if !seen {
						q.Block = cutBegin(t, q.Block)
					}
					db := reference.NewDatabase()
					ex := execution()
					ex.Lanes = lanes
					cfg := delivery.Config{Switches: delivery.Switches{WatchOff: off}}
					if _, err := deliver(t, unordered{reference.NewTransactional(db), true}, cfg, ex, q); err != nil {
						t.Fatal(err)
					}
					want := []string{"id=01", "id=03", "id=06"}
					if off {
						want = []string{"id=01", "id=06"} // what the guarantee prevents
					}
					var got []string
					for _, row := range db.Rows("t") {
						got = append(got, row[:5])
					}
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Errorf("rows %v, want %v", got, want)
					}
				})
			}
		}
	}
}

type unordered struct {
	*reference.Transactional
	is bool
}

func (u unordered) Prepare(ctx context.Context, s *batch.Schema) (sdk.Constraints, error) {
	c, err := u.Transactional.Prepare(ctx, s)
	c.Unordered = u.is
	return c, err
}

// cutBegin makes the last transaction of a block one that began before.
func cutBegin(t *testing.T, data []byte) []byte {
	t.Helper()
	var b batch.Block
	if err := b.Decode(data, batch.NewRegistry(), batch.Limits{}); err != nil {
		t.Fatal(err)
	}
	out := batch.NewBuilder(batch.Limits{})
	var e batch.Event
	for n, tx := range b.Txs {
		for i := tx.First; i < tx.First+tx.Count; i++ {
			if err := b.Event(i, &e); err != nil {
				t.Fatal(err)
			}
			if err := out.CopyEvent(&e); err != nil {
				t.Fatal(err)
			}
		}
		if n == len(b.Txs)-1 {
			tx.Begins, tx.Start = false, b.Txs[n-1].End
		}
		out.AppendTx(tx)
	}
	block, err := out.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return block
}

// A stream whose first block gives no position, such as a sign of life of an idle
// source, stores positions that the reader knows as its own all the same.
func TestFirstBlockWithoutPosition(t *testing.T) {
	s, sc := newSource(t), keyed(1, "t")
	s.must(s.b.BeginTx(batch.Tx{Begins: true}))
	s.must(s.b.Heartbeat(1))
	s.must(s.b.EndTx(true, nil, nil))
	first := s.block()
	first.First, first.Last = sdk.Position{}, sdk.Position{}
	s.tx(nil, s.insert(sc, 1, "a", "x"))
	second := s.block()
	replies, err := deliver(t, reference.NewTransactional(reference.NewDatabase()), delivery.Config{}, execution(), first, second)
	if err != nil {
		t.Fatal(err)
	}
	points := replies[len(replies)-1].Points
	if len(points) != 1 || points[0].Position.Format != second.Last.Format || points[0].Position.IsZero() {
		t.Errorf("points %+v, want the format %q", points, second.Last.Format)
	}
}
