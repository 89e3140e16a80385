package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/delivery"
	"github.com/datalink-go/datalink/sdk/wire"
)

// driven is a writer at work that a case gives blocks one by one.
type driven struct {
	target  sdk.Target
	engine  *delivery.Engine
	claimed *sdk.Claimed
	ctx     context.Context
	cancel  context.CancelFunc
	in      chan *wire.WriteRequest
	done    chan struct{}

	mu      sync.Mutex
	cond    *sync.Cond
	acked   uint64
	points  []sdk.Point
	records *wire.WriteReply
	ended   bool
	err     error
}

func execution(epoch uint64, id string) sdk.Execution {
	return sdk.Execution{Task: "kit", TaskUID: "kit-task", StoreUID: "kit-store", ID: id, Epoch: epoch, Writer: "w"}
}

// start opens a writer on the store and claims the target. With life it can be
// killed.
func start(ctx context.Context, sub *Subject, store Store, ex sdk.Execution, l *life) (*driven, error) {
	target, err := store.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	w := &driven{target: target, in: make(chan *wire.WriteRequest, 1024), done: make(chan struct{})}
	w.cond = sync.NewCond(&w.mu)
	w.ctx, w.cancel = context.WithCancel(ctx)
	inner := target
	if l != nil {
		l.death = w.cancel
		inner = mortal(target, l)
	}
	if w.engine, err = delivery.New(inner, sub.Engine); err != nil {
		return nil, err
	}
	if w.claimed, err = w.engine.Claim(w.ctx, ex); err != nil {
		return nil, errors.Join(err, target.Close(ctx))
	}
	go w.run()
	return w, nil
}

func (w *driven) run() {
	err := w.engine.Run(w.ctx, w)
	w.mu.Lock()
	w.ended, w.err = true, err
	w.mu.Unlock()
	w.cond.Broadcast()
	close(w.done)
}

// Recv is the engine's side.
func (w *driven) Recv() (*wire.WriteRequest, error) {
	select {
	case r, ok := <-w.in:
		if !ok {
			return nil, io.EOF
		}
		return r, nil
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	}
}

// Send is the engine's side.
func (w *driven) Send(r *wire.WriteReply) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = max(w.acked, r.Acked)
	if len(r.Points) > 0 {
		w.points = r.Points
	}
	if len(r.Records) > 0 {
		w.records = r
	}
	w.cond.Broadcast()
	return w.ctx.Err()
}

// write gives the blocks to the writer and waits until they are durable, refused
// or the writer has ended.
func (w *driven) write(reqs ...*wire.WriteRequest) error {
	var last uint64
	for _, r := range reqs {
		last = r.Seq
		w.in <- r
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.ended && w.acked < last && w.records == nil {
		w.cond.Wait()
	}
	switch {
	case w.acked >= last:
		return nil
	case w.records != nil:
		return fmt.Errorf("block %d, record %d was refused: %w", w.records.FailedSeq, w.records.Records[0].Index, &w.records.Records[0].Fault)
	case w.err != nil:
		return w.err
	}
	return errors.New("the stream has ended early")
}

// close ends the stream and the writer.
func (w *driven) close() error {
	close(w.in)
	<-w.done
	w.cancel()
	return errors.Join(w.err, shut(w.ctx, w.target))
}

// kill ends the writer as it is.
func (w *driven) kill() {
	w.cancel()
	<-w.done
	_ = shut(w.ctx, w.target)
}

// script makes fixed transactions of the plain table.
type script struct {
	*session
	schema *batch.Schema
	id     int
}

func newScript(points []sdk.Point) (*script, error) {
	s, err := openSession(newRandom(1), Schemas(), points)
	if err != nil {
		return nil, err
	}
	s.version = 1
	return &script{session: s, schema: s.schemas[tabPlain]}, nil
}

// block makes one block that holds a transaction with the events.
func (s *script) block(events ...kitEvent) (*wire.WriteRequest, error) {
	s.id++
	var covers []batch.Cover
	for i, p := range s.points {
		if p.has[s.id] {
			covers = append(covers, batch.Cover{Point: i})
		}
	}
	if err := s.b.BeginTx(batch.Tx{Begins: true, ID: fmt.Sprint("kit:", s.id), Covers: covers}); err != nil {
		return nil, err
	}
	for i := range events {
		if err := s.event(&events[i]); err != nil {
			return nil, err
		}
	}
	s.at.has[s.id] = true
	if err := s.b.EndTx(true, nil, s.at.encode()); err != nil {
		return nil, err
	}
	return s.request()
}

func insert(id int, v string) kitEvent {
	return kitEvent{table: tabPlain, kind: batch.Insert, after: kitRow{id, nil, v}}
}

func update(id int, v, now string) kitEvent {
	return kitEvent{table: tabPlain, kind: batch.Update, before: kitRow{id, nil, v}, after: kitRow{id, nil, now}}
}

// expect compares the plain table.
func expect(ctx context.Context, store Store, want ...string) error {
	got, err := store.Rows(ctx, Schemas()[tabPlain])
	if err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	got = slices.Clone(got)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("table %s holds %q, want %q", Schemas()[tabPlain].Name(), got, want)
	}
	return nil
}
