package pipeline

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

var items = &batch.Schema{ID: 1, Namespace: "db", Table: "items", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{
	{Name: "id", Type: batch.Int64}, {Name: "n", Type: batch.Int64},
}}

// change sets item id to n; n < 0 deletes it.
type change struct{ id, n int64 }

// log is a source's whole history: position i is before transaction i.
type history [][]change

func (h history) state() map[int64]int64 {
	m := map[int64]int64{}
	for _, tx := range h {
		for _, c := range tx {
			if c.n < 0 {
				delete(m, c.id)
			} else {
				m[c.id] = c.n
			}
		}
	}
	return m
}

func pos(i int) sdk.Position {
	return sdk.Position{Format: "t", Version: 1, Source: []byte(strconv.Itoa(i))}
}

func txOf(p sdk.Position) int {
	if p.IsZero() {
		return 0
	}
	n, err := strconv.Atoi(string(p.Source))
	if err != nil {
		panic(err)
	}
	return n
}

type fakeSource struct {
	h       history
	perRead int  // events a block
	logged  bool // each change also appends a row to a table without a key
	hold    chan struct{}
	opens   int
	dieAt   map[int]bool // dies once before sending block n of an opening
	durable sdk.Position
	mu      sync.Mutex
}

func (*fakeSource) ParsePosition(string) (sdk.Position, error)  { return sdk.Position{}, nil }
func (*fakeSource) FormatPosition(sdk.Position) (string, error) { return "", nil }
func (*fakeSource) ComparePositions(a, b sdk.Position) (sdk.Order, error) {
	return sdk.Equal, nil
}

func (*fakeSource) IntersectPositions(a, b sdk.Position) (sdk.Position, error) { return a, nil }
func (*fakeSource) UpgradePosition(p sdk.Position) (sdk.Position, error)       { return p, nil }
func (s *fakeSource) Durable(_ context.Context, p sdk.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.durable = p
	return nil
}

type fakeStream struct {
	credit chan struct{}
	out    chan *wire.ReadReply
	done   chan struct{}
	once   sync.Once
	mu     sync.Mutex
	left   int64
}

func (s *fakeStream) Grant(r, _ uint64) error {
	s.mu.Lock()
	s.left += int64(r)
	s.mu.Unlock()
	select {
	case s.credit <- struct{}{}:
	default:
	}
	return nil
}

func (s *fakeStream) Recv() (*wire.ReadReply, error) {
	select {
	case r, ok := <-s.out:
		if !ok {
			return nil, fmt.Errorf("%w: reader", ErrDied)
		}
		return r, nil
	case <-s.done:
		return nil, context.Canceled
	}
}

func (s *fakeStream) Close() error { s.once.Do(func() { close(s.done) }); return nil }

func (s *fakeSource) Open(_ context.Context, req *wire.OpenRequest) (SourceStream, error) {
	s.mu.Lock()
	s.opens++
	s.mu.Unlock()
	st := &fakeStream{credit: make(chan struct{}, 1), out: make(chan *wire.ReadReply), done: make(chan struct{})}
	start := len(s.h)
	for _, p := range req.Points {
		start = min(start, txOf(p.Position))
	}
	go s.produce(st, req.Points, start)
	return st, nil
}

func (s *fakeSource) produce(st *fakeStream, points []sdk.Point, start int) {
	defer close(st.out)
	b := batch.NewBuilder(batch.Limits{})
	first, blocks := pos(start), 0
	send := func(last sdk.Position) bool {
		data, err := b.Finish()
		if err != nil {
			panic(err)
		}
		for {
			st.mu.Lock()
			ok := st.left > 0
			if ok {
				st.left -= int64(b.Len())
			}
			st.mu.Unlock()
			if ok {
				break
			}
			select {
			case <-st.credit:
			case <-st.done:
				return false
			}
		}
		s.mu.Lock()
		die := s.dieAt[blocks]
		delete(s.dieAt, blocks)
		s.mu.Unlock()
		if die {
			return false
		}
		blocks++
		select {
		case st.out <- &wire.ReadReply{Block: append([]byte(nil), data...), First: first, Last: last}:
		case <-st.done:
			return false
		}
		b.Reset()
		first = last
		return true
	}
	for i := start; i < len(s.h); i++ {
		var covers []batch.Cover
		for k, p := range points {
			switch at := txOf(p.Position); {
			case at > i:
				covers = append(covers, batch.Cover{Point: k})
			case at == i && p.Position.Ordinal > 0:
				covers = append(covers, batch.Cover{Point: k, Upto: p.Position.Ordinal})
			}
		}
		if b.Len() >= s.perRead && !send(pos(i)) {
			return
		}
		must(b.BeginTx(batch.Tx{Begins: true, Covers: covers, ID: fmt.Sprint("tx", i)}))
		for k, c := range s.h[i] {
			if _, next := b.OpenTx(); b.Len() >= s.perRead && k > 0 {
				must(b.EndTx(false, pos(i).Source, nil))
				inside := pos(i)
				inside.Ordinal = next
				if !send(inside) {
					return
				}
				must(b.BeginTx(batch.Tx{Ordinal: next, Covers: covers, ID: fmt.Sprint("tx", i)}))
			}
			row(b, c)
			if s.logged {
				logRow(b, c)
			}
		}
		must(b.EndTx(true, nil, pos(i+1).Source))
	}
	if !b.Empty() && !send(pos(len(s.h))) {
		return
	}
	if s.hold != nil {
		<-st.done
		return
	}
	select {
	case st.out <- &wire.ReadReply{End: true}:
	case <-st.done:
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func row(b *batch.Builder, c change) {
	kind, side := batch.Insert, batch.AfterImage
	if c.n < 0 {
		kind, side = batch.Delete, batch.BeforeImage
	}
	must(b.BeginRow(kind, items))
	b.BeginImage(side)
	b.PutInt(c.id)
	b.PutInt(c.n)
	b.EndImage()
	must(b.EndRow())
}

var changesLog = &batch.Schema{ID: 2, Namespace: "db", Table: "log", Columns: []batch.Column{
	{Name: "id", Type: batch.Int64}, {Name: "n", Type: batch.Int64},
}}

func logRow(b *batch.Builder, c change) {
	must(b.BeginRow(batch.Insert, changesLog))
	b.BeginImage(batch.AfterImage)
	b.PutInt(c.id)
	b.PutInt(c.n)
	b.EndImage()
	must(b.EndRow())
}

// target is the durable side of a fake sink: rows, an append-only list of every
// change that took effect, and the progress.
type target struct {
	mu      sync.Mutex
	rows    map[int64]int64
	applied []change
	point   sdk.Point
	letters []sdk.DeadLetter
	claims  int

	refuse   map[int64]bool         // items that cannot be written
	poison   map[int64]bool         // items that kill the sink
	die      func(when string) bool // asked at each step
	mends    bool                   // a refused item is taken the next time
	slow     chan struct{}          // each block waits for a token
	unusable error                  // Claim fails with it
}

func newTarget() *target {
	return &target{rows: map[int64]int64{}, refuse: map[int64]bool{}, poison: map[int64]bool{}, die: func(string) bool { return false }}
}

type fakeSink struct{ t *target }

func (s *fakeSink) Claim(context.Context, sdk.Execution) (*sdk.Claimed, error) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.t.claims++
	if s.t.unusable != nil {
		return nil, s.t.unusable
	}
	return &sdk.Claimed{Points: []sdk.Point{s.t.point}, DeadLetters: append([]sdk.DeadLetter(nil), s.t.letters...)}, nil
}

type fakeSinkStream struct {
	t    *target
	in   chan *wire.WriteRequest
	out  chan *wire.WriteReply
	done chan struct{}
	once sync.Once
	fin  sync.Once
	err  error // set before out is closed
}

func (s *fakeSink) Write(context.Context) (SinkStream, error) {
	st := &fakeSinkStream{t: s.t, in: make(chan *wire.WriteRequest, 4), out: make(chan *wire.WriteReply, 64), done: make(chan struct{})}
	go st.serve()
	return st, nil
}

func (s *fakeSinkStream) Send(r *wire.WriteRequest) error {
	c := *r
	c.Block = append([]byte(nil), r.Block...)
	select {
	case s.in <- &c:
		return nil
	case <-s.done:
		return io.ErrClosedPipe
	}
}

func (s *fakeSinkStream) Recv() (*wire.WriteReply, error) {
	r, ok := <-s.out
	if !ok {
		return nil, s.err
	}
	return r, nil
}
func (s *fakeSinkStream) CloseSend() error { s.fin.Do(func() { close(s.in) }); return nil }
func (s *fakeSinkStream) Close() error     { s.once.Do(func() { close(s.done) }); return nil }

// serve does what the delivery engine does, for one lane, as simply as it can.
func (s *fakeSinkStream) serve() {
	defer s.Close()
	defer close(s.out)
	reg := batch.NewRegistry()
	var j job
	var acked uint64
	var least uint32 // requests of older attempts are dropped
	s.err = io.EOF
	for {
		var r *wire.WriteRequest
		select {
		case q, ok := <-s.in:
			if !ok {
				return
			}
			r = q
		case <-s.done:
			return
		}
		if s.t.slow != nil {
			select {
			case <-s.t.slow:
			case <-s.done:
				return
			}
		}
		if r.Attempt < least {
			continue
		}
		if s.t.die("received") {
			s.err = ErrDied
			return
		}
		var blk batch.Block
		must(blk.Decode(r.Block, reg, batch.Limits{}))
		j.aside = append(j.aside, r.SetAside...)
		records, died := s.t.block(&blk, r.Split, &j)
		if died {
			s.err = ErrDied
			return
		}
		reply := &wire.WriteReply{Accepted: r.Seq, Attempt: r.Attempt}
		if len(records) > 0 {
			reply.FailedSeq, reply.Records = r.Seq, records
			least, j = r.Attempt+1, job{}
		} else {
			switch n := len(blk.Txs); {
			case n == 0 || blk.Txs[n-1].Ends || r.Split:
				acked = r.Seq // nothing of an open transaction waits
			case n > 1 || blk.Txs[0].Begins:
				acked = r.Seq - 1 // what the blocks before had begun has ended
			}
			reply.Acked = acked
			s.t.mu.Lock()
			reply.Points = []sdk.Point{s.t.point}
			s.t.mu.Unlock()
		}
		s.out <- reply
	}
}

// job is what of a transaction was received and is not yet committed.
type job struct {
	changes []change
	aside   []sdk.DeadLetter
}

// block applies a block as one target transaction a source transaction.
func (t *target) block(blk *batch.Block, split bool, j *job) (records []wire.RecordFault, died bool) {
	var e batch.Event
	for k := range blk.Txs {
		tx := &blk.Txs[k]
		next := uint64(0)
		for i := tx.First; i < tx.First+tx.Count; i++ {
			must(blk.Event(i, &e))
			next = e.Ordinal + 1
			if !e.Kind.IsRow() || t.covered(tx, e.Ordinal) {
				continue
			}
			c := changeOf(&e)
			if t.poison[c.id] {
				return nil, true
			}
			if t.refuse[c.id] {
				if t.mends {
					delete(t.refuse, c.id)
				}
				records = append(records, wire.RecordFault{Index: uint64(i), Fault: sdk.Fault{Code: sdk.CodeConflict, Message: "no"}})
				continue
			}
			j.changes = append(j.changes, c)
		}
		if len(records) > 0 {
			return records, false
		}
		var p sdk.Position
		switch {
		case tx.Ends:
			p = pos(txOf(sdk.Position{Source: tx.End, Format: "t"}))
		case split && next > 0:
			p = pos(txOf(sdk.Position{Source: tx.Start, Format: "t"}))
			p.Ordinal = next
		default:
			continue
		}
		if t.fully(tx) || !tx.Ends && t.covered(tx, next-1) {
			j.changes = nil // a commit would put the position back
			continue
		}
		if t.die("before commit") {
			return nil, true
		}
		t.commit(p, j)
		if t.die("after commit") {
			return nil, true
		}
	}
	return nil, false
}

func (t *target) covered(tx *batch.Tx, ordinal uint64) bool {
	for _, c := range tx.Covers {
		if c.Point == 0 && (c.Upto == 0 || ordinal < c.Upto) {
			return true
		}
	}
	return false
}

func (t *target) fully(tx *batch.Tx) bool {
	return len(tx.Covers) > 0 && tx.Covers[0].Upto == 0
}

func (t *target) commit(p sdk.Position, j *job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range j.changes {
		if c.n < 0 {
			delete(t.rows, c.id)
		} else {
			t.rows[c.id] = c.n
		}
		t.applied = append(t.applied, c)
	}
	t.letters = append(t.letters, j.aside...)
	t.point.Position = p
	t.point.BatchNo++
	*j = job{}
}

func changeOf(e *batch.Event) change {
	im := e.After
	if e.Kind == batch.Delete {
		im = e.Before
	}
	v, err := im.Values(nil)
	must(err)
	if e.Kind == batch.Delete {
		return change{v[0].Int64(), -1}
	}
	return change{v[0].Int64(), v[1].Int64()}
}
