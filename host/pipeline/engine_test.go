package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/conformance/reference"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

var errKilled = errors.New("killed")

// process is one life of a real delivery engine over the reference writer.
type process struct {
	db  *reference.Database
	cfg delivery.Config

	poison int64 // item whose change kills it, 0 = none
	mortal func(step string) bool
	ctx    context.Context
	kill   context.CancelFunc
	engine *delivery.Engine
}

func start(db *reference.Database, cfg delivery.Config, poison int64, mortal func(string) bool) *process {
	p := &process{db: db, cfg: cfg, poison: poison, mortal: mortal}
	p.ctx, p.kill = context.WithCancel(context.Background())
	w := &mortalWriter{reference.NewTransactional(db), p}
	var err error
	if p.engine, err = delivery.New(w, cfg); err != nil {
		panic(err)
	}
	return p
}

func (p *process) step(name string) error {
	if p.ctx.Err() != nil {
		return errKilled
	}
	if p.mortal(name) {
		p.kill()
		return errKilled
	}
	return nil
}

type mortalWriter struct {
	*reference.Transactional
	p *process
}

func (w *mortalWriter) Claim(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	if err := w.p.step("claim"); err != nil {
		return sdk.Claimed{}, err
	}
	return w.Transactional.Claim(ctx, ex)
}

func (w *mortalWriter) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	if err := w.p.step("begin"); err != nil {
		return nil, err
	}
	t, err := w.Transactional.Begin(ctx, lanes)
	if err != nil {
		return nil, err
	}
	return &mortalTx{t, w.p}, nil
}

type mortalTx struct {
	sdk.Tx
	p *process
}

func (t *mortalTx) Fence(ctx context.Context, next []sdk.Next) error {
	if err := t.p.step("fence"); err != nil {
		return err
	}
	return t.Tx.Fence(ctx, next)
}

func (t *mortalTx) Apply(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	for _, seg := range c.Segments {
		for i := range seg {
			if t.p.poison != 0 && seg[i].Schema.Table == "items" && string(seg[i].Key) == string(keyOf(t.p.poison)) {
				t.p.kill()
				return nil, errKilled
			}
		}
	}
	if err := t.p.step("apply"); err != nil {
		return nil, err
	}
	return t.Tx.Apply(ctx, c)
}

func (t *mortalTx) Commit(ctx context.Context) error {
	if err := t.p.step("commit"); err != nil {
		_ = t.Tx.Rollback(ctx) // the server drops the session's transaction
		return err
	}
	if err := t.Tx.Commit(ctx); err != nil {
		return err
	}
	return t.p.step("committed")
}

func keyOf(id int64) []byte {
	return []byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24), 0, 0, 0, 0}
}

// engineSink is a Sink over a process.
type engineSink struct{ p *process }

func (s engineSink) Claim(ctx context.Context, ex sdk.Execution) (*sdk.Claimed, error) {
	c, err := s.p.engine.Claim(ctx, ex)
	if s.p.ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrDied, errKilled)
	}
	return c, err
}

func (s engineSink) Write(ctx context.Context) (SinkStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	st := &engineStream{p: s.p, ctx: ctx, cancel: cancel, in: make(chan *wire.WriteRequest), out: make(chan *wire.WriteReply), over: make(chan struct{})}
	context.AfterFunc(s.p.ctx, cancel)
	go func() {
		st.err = s.p.engine.Run(ctx, st.engineSide())
		close(st.over)
	}()
	return st, nil
}

type engineStream struct {
	p      *process
	ctx    context.Context
	cancel context.CancelFunc
	in     chan *wire.WriteRequest
	out    chan *wire.WriteReply
	once   sync.Once
	over   chan struct{} // Run has returned err
	err    error
}

func (s *engineStream) Send(r *wire.WriteRequest) error {
	c := *r
	c.Block = append([]byte(nil), r.Block...)
	select {
	case s.in <- &c:
	case <-s.ctx.Done():
	case <-s.over:
	}
	return nil
}

func (s *engineStream) Recv() (*wire.WriteReply, error) {
	select {
	case r := <-s.out:
		return r, nil
	case <-s.p.ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrDied, errKilled)
	case <-s.over:
	}
	switch {
	case s.p.ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", ErrDied, errKilled)
	case s.err != nil:
		return nil, s.err
	}
	return nil, io.EOF
}

func (s *engineStream) CloseSend() error { s.once.Do(func() { close(s.in) }); return nil }

func (s *engineStream) Close() error {
	s.cancel()
	<-s.over
	return nil
}

type engineSide struct{ s *engineStream }

func (s *engineStream) engineSide() engineSide { return engineSide{s} }

func (e engineSide) Recv() (*wire.WriteRequest, error) {
	select {
	case r, ok := <-e.s.in:
		if !ok {
			return nil, io.EOF
		}
		return r, nil
	case <-e.s.ctx.Done():
		return nil, e.s.ctx.Err()
	}
}

func (e engineSide) Send(r *wire.WriteReply) error {
	select {
	case e.s.out <- r:
		return nil
	case <-e.s.ctx.Done():
		return e.s.ctx.Err()
	}
}

// engineWriter is a writer whose process is started again after each death.
func engineWriter(name string, db *reference.Database, cfg delivery.Config, poison int64, mortal func(string) bool) WriterConfig {
	if mortal == nil {
		mortal = func(string) bool { return false }
	}
	begin := func() Sink { return engineSink{start(db, cfg, poison, mortal)} }
	return WriterConfig{Name: name, Sink: begin(), Stores: true, Reopen: func(context.Context) (Sink, error) { return begin(), nil }}
}

// same compares a target with the history: the keyed table by its last state, the
// keyless one by each row once.
func same(t fataler, name string, db *reference.Database, h history, without int64) {
	var keyed, log []string
	for id, n := range h.state() {
		if id != without {
			keyed = append(keyed, fmt.Sprintf("%d,%d", id, n))
		}
	}
	for _, c := range flat(h) {
		log = append(log, fmt.Sprintf("%d,%d", c.id, c.n))
	}
	sort.Strings(keyed)
	sort.Strings(log)
	if d := cmp.Diff(keyed, plainRows(db, items)); d != "" {
		t.Fatalf("%s: items (-want +got)\n%s", name, d)
	}
	if d := cmp.Diff(log, plainRows(db, changesLog)); d != "" {
		t.Fatalf("%s: log (-want +got)\n%s", name, d)
	}
}

func plainRows(db *reference.Database, s *batch.Schema) []string {
	var out []string
	for _, r := range db.Cells(s) {
		var cells []string
		for _, c := range r {
			cells = append(cells, fmt.Sprint(int64(binary.LittleEndian.Uint64([]byte(*c)))))
		}
		out = append(out, strings.Join(cells, ","))
	}
	sort.Strings(out)
	return out
}

// Real engines with one to four lanes die at any step, the reader dies as well,
// and targets that stand at different places still hold each change once.
func TestEngineExactlyOnceUnderDeaths(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := numbered(rapid.IntRange(1, 80).Draw(rt, "txs"), rapid.IntRange(1, 6).Draw(rt, "size"))
		rng := rand.New(rand.NewSource(rapid.Int64().Draw(rt, "seed")))
		cfg := configOf(&fakeSource{h: h, perRead: rapid.IntRange(4, 60).Draw(rt, "per read"), logged: true, dieAt: map[int]bool{rng.Intn(8): true}})
		var dbs []*reference.Database
		for i := range rapid.IntRange(1, 3).Draw(rt, "writers") {
			db := reference.NewDatabase()
			var mu sync.Mutex
			r, left := rand.New(rand.NewSource(rng.Int63())), 4
			mortal := func(string) bool {
				mu.Lock()
				defer mu.Unlock()
				if left == 0 || r.Intn(15) != 0 {
					return false
				}
				left--
				return true
			}
			dc := delivery.Config{Advance: 10 * time.Millisecond, Backoff: time.Millisecond, Lanes: int32(rapid.IntRange(1, 4).Draw(rt, "lanes")), Records: rapid.IntRange(1, 30).Draw(rt, "records"), SplitRecords: rapid.SampledFrom([]int{0, 3}).Draw(rt, "split")}
			dbs = append(dbs, db)
			cfg.Writers = append(cfg.Writers, engineWriter(fmt.Sprint("w", i), db, dc, 0, mortal))
		}
		cfg.Window = Window{Records: rapid.IntRange(150, 400).Draw(rt, "window")}
		if _, err := run(rt, cfg); err != nil {
			rt.Fatal(err)
		}
		for i, db := range dbs {
			same(rt, fmt.Sprint("w", i), db, h, -1)
		}
	})
}

// A record that kills a real engine is found among transactions and lanes; all
// others are there once.
func TestEnginePoison(t *testing.T) {
	for _, lanes := range []int32{1, 4} {
		h := numbered(40, 7)
		db := reference.NewDatabase()
		wc := engineWriter("w", db, delivery.Config{Lanes: lanes}, 33, nil)
		wc.OnError = DeadLetterOnError
		cfg := configOf(&fakeSource{h: h, perRead: 90, logged: true}, wc)
		var letters []sdk.DeadLetter
		cfg.Observer = &keeper{into: &letters}
		if _, err := run(t, cfg); err != nil {
			t.Fatalf("%d lanes: %v", lanes, err)
		}
		same(t, fmt.Sprint(lanes, " lanes"), db, h, 33)
		want := 0
		for _, c := range flat(h) {
			if c.id == 33 {
				want++
			}
		}
		if len(letters) != want || letters[0].Fault.Code != sdk.CodePoison {
			t.Fatalf("%d lanes: %d dead letters, want %d, the first of them poison: %+v", lanes, len(letters), want, letters)
		}
	}
}

type keeper struct {
	nobody
	into *[]sdk.DeadLetter
}

func (k *keeper) DeadLettered(_ string, d sdk.DeadLetter) { *k.into = append(*k.into, d) }
