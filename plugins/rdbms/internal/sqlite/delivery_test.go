package sqlite

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

// The delivery engine writes a random history through this writer, in runs that
// are cut anywhere, each by another execution with other lanes. At the end the
// target equals the source, the keyless table with every row once.
func TestDelivery(t *testing.T) {
	const seeds = 5
	differ := 0
	for seed := range uint64(seeds) {
		if d := deliver(t, seed, delivery.Switches{}); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
		if deliver(t, seed, delivery.Switches{SkipOff: true}) != "" {
			differ++
		}
	}
	if differ == 0 {
		t.Errorf("without the skip of what is covered the target still equals the source on %d seeds: the test shows nothing", seeds)
	}
	t.Logf("without the skip of what is covered %d of %d seeds differ", differ, seeds)
}

// deliver returns how the target differs at the end.
func deliver(t *testing.T, seed uint64, sw delivery.Switches) string {
	file := path(t)
	h := newHistory(t, rand.New(rand.NewPCG(seed, 1)))
	for epoch, done := uint64(1), false; !done; epoch++ {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w, err := New(Config{Path: file, Keyless: Append})
		must(t, err)
		e, err := delivery.New(w, delivery.Config{Records: 1 + h.rng.IntN(20), Switches: sw})
		must(t, err)
		ex := execution(fmt.Sprint("x", epoch), epoch)
		ex.Lanes = 1 + int32(h.rng.IntN(3))
		c, err := e.Claim(ctx, ex)
		must(t, err)
		limit := 1 + h.rng.IntN(3) // blocks
		done = epoch > 12
		if done {
			limit = len(h.txs)
		}
		left := 1 + h.rng.IntN(6)
		w.atCommit = func(after bool) error {
			if left--; after && left <= 0 && !done {
				cancel() // the other lanes stay where they are
			}
			return nil
		}
		err = e.Run(ctx, &stream{ctx: ctx, in: h.blocks(c.Points, limit)})
		must(t, w.Close(context.Background()))
		if err != nil && ctx.Err() == nil {
			return err.Error()
		}
	}
	if got := rows(t, file, "SELECT id, v, n FROM t ORDER BY id"); !slices.Equal(got, h.lines()) {
		return fmt.Sprintf("got %q, want %q", got, h.lines())
	}
	if got := rows(t, file, "SELECT a FROM log ORDER BY a"); !slices.Equal(got, h.logged) {
		return fmt.Sprintf("keyless table: got %q, want %q", got, h.logged)
	}
	return ""
}

// stream hands out what was made before, and keeps the replies.
type stream struct {
	ctx     context.Context
	in      []*wire.WriteRequest
	mu      sync.Mutex
	replies []*wire.WriteReply
}

func (s *stream) Recv() (*wire.WriteRequest, error) {
	if len(s.in) == 0 {
		return nil, io.EOF
	}
	r := s.in[0]
	s.in = s.in[1:]
	return r, nil
}

func (s *stream) Send(r *wire.WriteReply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, r)
	return nil
}

// history is a list of source transactions, and what they leave.
type history struct {
	t      *testing.T
	rng    *rand.Rand
	txs    [][]func(*batch.Builder)
	rows   map[int][2]string
	logged []string
}

func newHistory(t *testing.T, rng *rand.Rand) *history {
	h := &history{t: t, rng: rng, rows: map[int][2]string{}}
	s, log := keyed(), keyless()
	n := 0
	for range 60 {
		var tx []func(*batch.Builder)
		add := func(k batch.Kind, s *batch.Schema, before, after []any) {
			tx = append(tx, func(b *batch.Builder) { h.row(b, k, s, before, after) })
		}
		for range rng.IntN(8) {
			id, v, num := 1+rng.IntN(9), strconv.Itoa(rng.IntN(99)), rng.IntN(9)
			row, have := h.rows[id]
			switch op := rng.IntN(5); {
			case op == 0:
				n++
				add(batch.Insert, log, nil, vals(1000+n, nil))
				h.logged = append(h.logged, fmt.Sprint(1000+n))
			case !have:
				add(batch.Insert, s, nil, vals(id, v, num))
				h.rows[id] = [2]string{v, fmt.Sprint(num)}
			case op == 1:
				add(batch.Delete, s, vals(id, absent, absent), nil)
				delete(h.rows, id)
			case op == 2:
				to := id + 10*(1+rng.IntN(2))
				if _, taken := h.rows[to]; taken {
					continue
				}
				add(batch.Update, s, vals(id, absent, absent), vals(to, unchanged, num))
				delete(h.rows, id)
				h.rows[to] = [2]string{row[0], fmt.Sprint(num)}
			default:
				add(batch.Update, s, vals(id, absent, absent), vals(id, unchanged, num))
				h.rows[id] = [2]string{row[0], fmt.Sprint(num)}
			}
		}
		h.txs = append(h.txs, tx)
	}
	return h
}

func (h *history) row(b *batch.Builder, k batch.Kind, s *batch.Schema, before, after []any) {
	must(h.t, b.BeginRow(k, s))
	for side, image := range [][]any{before, after} {
		if image == nil {
			continue
		}
		b.BeginImage(batch.Side(side))
		for i, v := range image {
			put(b, &s.Columns[i], v)
		}
		b.EndImage()
	}
	must(h.t, b.EndRow())
}

// blocks makes the blocks after the lowest of the points, with what the others
// cover marked, as a reader does.
func (h *history) blocks(points []sdk.Point, limit int) []*wire.WriteRequest {
	place := func(p sdk.Point) int {
		n, _ := strconv.Atoi(string(p.Position.Source))
		return n
	}
	from := len(h.txs)
	lanes := make([]int64, len(points))
	for i, p := range points {
		from, lanes[i] = min(from, place(p)), int64(p.Lane)
	}
	var out []*wire.WriteRequest
	b := batch.NewBuilder(batch.Limits{})
	for i := from; i < len(h.txs) && len(out) < limit; {
		first := i
		for range 1 + h.rng.IntN(5) {
			if i == len(h.txs) {
				break
			}
			tx := batch.Tx{Begins: true, ID: fmt.Sprint(i)}
			for k, p := range points {
				switch {
				case place(p) > i:
					tx.Covers = append(tx.Covers, batch.Cover{Point: k})
				case place(p) == i && p.Position.Ordinal > 0:
					tx.Covers = append(tx.Covers, batch.Cover{Point: k, Upto: p.Position.Ordinal})
				}
			}
			must(h.t, b.BeginTx(tx))
			for _, put := range h.txs[i] {
				put(b)
			}
			i++
			must(h.t, b.EndTx(true, nil, fmt.Append(nil, i)))
		}
		data, err := b.Finish()
		must(h.t, err)
		r := &wire.WriteRequest{Seq: uint64(len(out) + 1), Block: slices.Clone(data), First: at(uint64(first)), Last: at(uint64(i))}
		if len(out) == 0 {
			r.Lanes = lanes
		}
		out = append(out, r)
		b.Reset()
	}
	return out
}

func (h *history) lines() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(h.rows)) {
		out = append(out, fmt.Sprintf("%d %q %s", id, h.rows[id][0], h.rows[id][1]))
	}
	return out
}
