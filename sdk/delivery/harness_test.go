package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

// pipe is a stream in memory. What is queued before Run comes at once.
type pipe struct {
	ctx context.Context
	in  chan *wire.WriteRequest

	mu      sync.Mutex
	replies []*wire.WriteReply
	changed chan struct{}
}

func newPipe(ctx context.Context) *pipe {
	return &pipe{ctx: ctx, in: make(chan *wire.WriteRequest, 1024), changed: make(chan struct{}, 1)}
}

func (p *pipe) Recv() (*wire.WriteRequest, error) {
	select {
	case r, ok := <-p.in:
		if !ok {
			return nil, io.EOF
		}
		return r, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

func (p *pipe) Send(r *wire.WriteReply) error {
	p.mu.Lock()
	p.replies = append(p.replies, r)
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
	return p.ctx.Err()
}

func (p *pipe) last() *wire.WriteReply {
	p.mu.Lock()
	defer p.mu.Unlock()
	return lastReply(p.replies)
}

// until waits for a reply that does what is asked.
func (p *pipe) until(t *testing.T, what string, ok func(*wire.WriteReply) bool) *wire.WriteReply {
	t.Helper()
	from := 0
	for {
		p.mu.Lock()
		for ; from < len(p.replies); from++ {
			if ok(p.replies[from]) {
				r := p.replies[from]
				p.mu.Unlock()
				return r
			}
		}
		p.mu.Unlock()
		select {
		case <-p.changed:
		case <-p.ctx.Done():
			t.Fatalf("no reply with %s among %d", what, from)
		}
	}
}

// source makes blocks of transactions. Positions are numbers as text.
type source struct {
	t   testing.TB
	b   *batch.Builder
	seq uint64
	at  int
	txs int
}

func newSource(t testing.TB) *source {
	return &source{t: t, b: batch.NewBuilder(batch.Limits{})}
}

func position(n int) sdk.Position {
	return sdk.Position{Format: "test", Version: 1, Source: fmt.Append(nil, n)}
}

func (s *source) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// tx appends a whole transaction.
func (s *source) tx(covers []batch.Cover, events ...func()) {
	s.t.Helper()
	s.must(s.b.BeginTx(batch.Tx{Begins: true, ID: fmt.Sprint("tx", s.at), Covers: covers}))
	for _, e := range events {
		e()
	}
	s.at++
	s.must(s.b.EndTx(true, nil, fmt.Append(nil, s.at)))
	s.txs++
}

// block ends the block and returns its request.
func (s *source) block() *wire.WriteRequest {
	s.t.Helper()
	data, err := s.b.Finish()
	s.must(err)
	s.seq++
	r := &wire.WriteRequest{Seq: s.seq, Block: append([]byte(nil), data...), First: position(s.at - s.txs), Last: position(s.at)}
	if s.seq == 1 {
		r.Lanes = []int64{0}
	}
	s.b.Reset()
	s.txs = 0
	return r
}

// row appends a row event. An image is a list of values: int, string, nil for
// NULL, absent or unchanged.
func (s *source) row(k batch.Kind, sc *batch.Schema, before, after []any) func() {
	return func() {
		s.t.Helper()
		s.must(s.b.BeginRow(k, sc))
		for side, image := range [][]any{before, after} {
			if image == nil {
				continue
			}
			s.b.BeginImage(batch.Side(side))
			for _, v := range image {
				put(s.b, v)
			}
			s.b.EndImage()
		}
		s.must(s.b.EndRow())
	}
}

type mark string

const (
	absent    mark = "absent"
	unchanged mark = "unchanged"
)

func put(b *batch.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.PutNull()
	case int:
		b.PutInt(int64(v))
	case string:
		b.PutString(v)
	case mark:
		if v == absent {
			b.PutAbsent()
		} else {
			b.PutUnchanged()
		}
	}
}

func (s *source) insert(sc *batch.Schema, v ...any) func() { return s.row(batch.Insert, sc, nil, v) }

func (s *source) del(sc *batch.Schema, v ...any) func() { return s.row(batch.Delete, sc, v, nil) }

func (s *source) update(sc *batch.Schema, v, w []any) func() { return s.row(batch.Update, sc, v, w) }

func vals(v ...any) []any { return v }

func execution() sdk.Execution {
	return sdk.Execution{Task: "t", TaskUID: "u", StoreUID: "s", ID: "x1", Epoch: 1, Writer: "w"}
}

// deliver claims the target and runs the requests through it until the end of
// the stream. It returns the replies.
func deliver(t testing.TB, target sdk.Target, cfg delivery.Config, ex sdk.Execution, reqs ...*wire.WriteRequest) ([]*wire.WriteReply, error) {
	t.Helper()
	e, err := delivery.New(target, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := e.Claim(ctx, ex); err != nil {
		return nil, err
	}
	p := newPipe(ctx)
	for _, r := range reqs {
		p.in <- r
	}
	close(p.in)
	err = e.Run(ctx, p)
	if errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return p.replies, err
}

func keyed(id uint32, name string) *batch.Schema {
	return &batch.Schema{ID: id, Version: 1, Table: name, PrimaryKey: true, Key: []int{0}, Columns: []batch.Column{
		{Name: "id", Type: batch.Int32}, {Name: "v", Type: batch.String, Flags: batch.Nullable}, {Name: "w", Type: batch.String, Flags: batch.Nullable},
	}}
}
