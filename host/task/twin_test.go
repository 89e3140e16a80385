package task

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// These tests run the real pipeline between a source in memory and a target that
// is fenced by its progress row, as a transactional writer does it.

var items = &batch.Schema{ID: 1, Namespace: "shop", Table: "items", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{{Name: "id", Type: batch.Int64}}}

func place(i int) sdk.Position {
	return sdk.Position{Format: "fake", Version: 1, Source: []byte("s" + strconv.Itoa(i))}
}

func placeOf(p sdk.Position) int {
	if p.IsZero() {
		return 0
	}
	n, err := strconv.Atoi(string(p.Source[1:]))
	if err != nil {
		panic(err)
	}
	return n
}

// counting is a source of n transactions, one row and one block each.
type counting struct {
	fakeSource
	n    int
	last int // blocks up to this one come at once, the others when more is closed
	more chan struct{}
}

func (s *counting) Open(_ context.Context, req *wire.OpenRequest) (pipeline.SourceStream, error) {
	at := s.n
	for _, p := range req.Points {
		at = min(at, placeOf(p.Position))
	}
	return &countingStream{s: s, at: at, done: make(chan struct{})}, nil
}

type countingStream struct {
	s    *counting
	at   int
	done chan struct{}
	once sync.Once
}

func (st *countingStream) Grant(uint64, uint64) error { return nil }
func (st *countingStream) Close() error               { st.once.Do(func() { close(st.done) }); return nil }

func (st *countingStream) Recv() (*wire.ReadReply, error) {
	if st.at >= st.s.n {
		return &wire.ReadReply{End: true}, nil
	}
	if st.at >= st.s.last {
		select {
		case <-st.s.more:
		case <-st.done:
			return nil, context.Canceled
		}
	}
	b := batch.NewBuilder(batch.Limits{})
	err := errors.Join(b.BeginTx(batch.Tx{Begins: true, ID: strconv.Itoa(st.at)}), b.BeginRow(batch.Insert, items))
	b.BeginImage(batch.AfterImage)
	b.PutInt(int64(st.at))
	b.EndImage()
	if err := errors.Join(err, b.EndRow(), b.EndTx(true, nil, place(st.at+1).Source)); err != nil {
		return nil, err
	}
	data, err := b.Finish()
	if err != nil {
		return nil, err
	}
	r := &wire.ReadReply{Block: slices.Clone(data), First: place(st.at), Last: place(st.at + 1)}
	st.at++
	return r, nil
}

// table is a target: who claimed it, how far, and which blocks were applied by whom.
type table struct {
	mu      sync.Mutex
	held    sdk.Claimant
	point   sdk.Point
	applied []string // executionId of each block
	stores  bool     // the point; else the coordination store keeps it
	unsafe  bool     // the fence is off
	before  func(execution string, block int)
	acked   func(blocks int)
}

type tableSink struct {
	t  *table
	ex sdk.Execution
}

func (s *tableSink) Claim(_ context.Context, ex sdk.Execution) (*sdk.Claimed, error) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	h := s.t.held
	if h.StoreUID != "" && h.StoreUID != ex.StoreUID && !ex.TakeOver {
		f := sdk.Faultf(sdk.CodeForeignClaim, "the target holds progress of store %s", h.StoreUID)
		f.Claimant = &h
		return nil, f
	}
	s.ex = ex
	s.t.held = sdk.Claimant{Execution: ex.ID, Epoch: ex.Epoch, StoreUID: ex.StoreUID, TaskUID: ex.TaskUID, Worker: ex.Worker}
	if !s.t.stores {
		return nil, nil
	}
	return &sdk.Claimed{Points: []sdk.Point{s.t.point}}, nil
}

func (s *tableSink) Write(context.Context) (pipeline.SinkStream, error) {
	st := &tableStream{s: s, in: make(chan wire.WriteRequest, 1000), out: make(chan *wire.WriteReply, 1000), done: make(chan struct{})}
	go st.serve()
	return st, nil
}

type tableStream struct {
	s        *tableSink
	in       chan wire.WriteRequest
	out      chan *wire.WriteReply
	done     chan struct{}
	fin, end sync.Once
}

func (st *tableStream) Send(r *wire.WriteRequest) error {
	select {
	case st.in <- *r:
		return nil
	case <-st.done:
		return io.ErrClosedPipe
	}
}
func (st *tableStream) CloseSend() error { st.fin.Do(func() { close(st.in) }); return nil }
func (st *tableStream) Close() error     { st.end.Do(func() { close(st.done) }); return nil }
func (st *tableStream) Recv() (*wire.WriteReply, error) {
	select {
	case r, ok := <-st.out:
		if !ok {
			return nil, io.EOF
		}
		return r, nil
	case <-st.done:
		return nil, context.Canceled
	}
}

func (st *tableStream) serve() {
	defer close(st.out)
	for r := range st.in {
		if len(r.Block) == 0 {
			continue
		}
		st.out <- st.s.t.apply(st.s.ex, &r)
	}
}

func (t *table) apply(ex sdk.Execution, r *wire.WriteRequest) *wire.WriteReply {
	if t.before != nil {
		t.before(ex.ID, placeOf(r.First))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.unsafe && (t.held.Execution != ex.ID || t.held.Epoch != ex.Epoch) {
		h := t.held
		f := sdk.Faultf(sdk.CodeFenced, "block %d: execution %s claimed the target with epoch %d", placeOf(r.First), h.Execution, h.Epoch)
		f.Claimant = &h
		return &wire.WriteReply{Attempt: r.Attempt, Fault: f}
	}
	t.applied = append(t.applied, ex.ID)
	t.point.Position = r.Last
	if t.acked != nil {
		t.acked(len(t.applied))
	}
	reply := &wire.WriteReply{Accepted: r.Seq, Acked: r.Seq, Attempt: r.Attempt}
	if t.stores {
		t.point.BatchNo++
		reply.Points = []sdk.Point{t.point}
	}
	return reply
}

// machine is a rig whose connectors are a counting source and a table.
type machine struct {
	*rig
	src  *counting
	t    *table
	sink *tableSink // of the last claim
}

func (m machine) Start(context.Context, sdk.Execution) (Connectors, error) { return m, nil }
func (m machine) Pipeline() pipeline.Config {
	return pipeline.Config{
		Reader:  pipeline.ReaderConfig{Source: m.src},
		Writers: []pipeline.WriterConfig{{Name: "w", Sink: m.sink, Stores: m.t.stores, Leased: !m.t.stores}},
	}
}

func newMachine(t *testing.T, target *table, src *counting) machine {
	t.Helper()
	m := machine{rig: newRig(t), src: src, t: target, sink: &tableSink{t: target}}
	m.level = manifest.LevelTransactional
	if !target.stores {
		m.level = manifest.LevelIdempotent
	}
	m.cfg.Launcher, m.cfg.Run, m.cfg.Clock = m, nil, nil
	return m
}

// twins runs one task from two stores on one target. The first stalls with rows
// read and not yet written, the second takes the target over and runs to the end,
// then the first goes on.
func twins(t *testing.T, unsafe bool) (first, second Outcome, target *table, a machine) {
	t.Helper()
	target = &table{stores: true, unsafe: unsafe}
	stalled, wake := make(chan struct{}), make(chan struct{})
	a = newMachine(t, target, &counting{n: 20, last: 20})
	b := newMachine(t, target, &counting{n: 20, last: 20})
	b.cfg.TakeOver = true
	ra := a.runner()
	target.before = func(execution string, block int) {
		if execution == ra.ExecutionID() && block == 7 {
			close(stalled)
			<-wake
		}
	}
	done := make(chan Outcome, 1)
	go func() { done <- ra.Run(t.Context()) }()
	<-stalled
	second = b.runner().Run(t.Context())
	close(wake)
	return <-done, second, target, a
}

func TestTwoStoresOneTarget(t *testing.T) {
	first, second, target, a := twins(t, false)
	if second.Phase != Ended || first.Phase != Fenced {
		t.Fatalf("outcomes: got first %s %q, second %s %q; want fenced, ended", first.Phase, first.Reason, second.Phase, second.Reason)
	}
	if len(target.applied) != 20 || placeOf(target.point.Position) != 20 {
		t.Errorf("target: got %d blocks up to %d, want each of 20 once", len(target.applied), placeOf(target.point.Position))
	}
	for i, by := range target.applied {
		if want := map[bool]string{true: first.ExecutionID, false: second.ExecutionID}[i < 7]; by != want {
			t.Errorf("block %d was applied by %s, want %s", i, by, want)
		}
	}
	o := a.overlaps()
	if len(o) != 1 {
		t.Fatalf("overlaps of the first: got %d, want 1", len(o))
	}
	x := o[0]
	if x.Cause != coordination.CauseFence || x.Late.ExecutionID != first.ExecutionID || x.Owner.ExecutionID != second.ExecutionID ||
		x.Owner.StoreUID == x.Late.StoreUID || x.Owner.Worker != "w1" || x.Verdict != coordination.Harmless {
		t.Errorf("overlap: got %+v", x)
	}
	if w := x.Writers[0]; w.Written != 7 || w.Refused != 1 || w.From.Text != "s7" || placeOf(fromStore(w.To)) < 8 || !slices.Equal(x.Tables, []string{"shop.items"}) || !x.From.Before(x.To) {
		t.Errorf("window: got %+v, tables %q, time %s to %s; want 7 written, 1 refused, from s7", w, x.Tables, x.From, x.To)
	}
}

// With the fence off the same run does harm: the check above can fail.
func TestTwoStoresWithoutTheFence(t *testing.T) {
	first, _, target, _ := twins(t, true)
	if first.Phase == Fenced || len(target.applied) <= 20 {
		t.Fatalf("without the fence: got %s and %d blocks, want late blocks on top of 20", first.Phase, len(target.applied))
	}
}

// A writer without storage resumes from the coordination store's progress.
func TestResumeFromTheStore(t *testing.T) {
	five := make(chan struct{})
	target := &table{acked: func(n int) {
		if n == 5 {
			close(five)
		}
	}}
	more := make(chan struct{})
	src := &counting{n: 12, last: 5, more: more}
	m := newMachine(t, target, src)
	r := m.runner()
	done := make(chan Outcome, 1)
	go func() { done <- r.Run(t.Context()) }()
	<-five
	r.Stop(Paused, "paused")
	if out := <-done; out.Phase != Paused {
		t.Fatalf("first run: got %+v", out.State)
	}
	p, err := m.store.Progress(t.Context(), m.task.UID, "w")
	if err != nil || len(p.Points) != 1 || placeOf(fromStore(p.Points[0].Position)) != 5 {
		t.Fatalf("stored progress: got %+v, %v, want s5", p.Points, err)
	}
	close(more)
	out := m.runner().Run(t.Context())
	if out.Phase != Ended || len(target.applied) != 12 {
		t.Fatalf("second run: got %+v, %d blocks, want 12 in all", out.State, len(target.applied))
	}
	if d := cmp.Diff([]string{"started", "ended", "started", "ended"}, m.journal()); d != "" {
		t.Errorf("journal (-want +got):\n%s", d)
	}
}
