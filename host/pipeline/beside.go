package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Beside is what others may do with a pipeline that runs: hear which keys its stream
// changes, wait until its targets hold a position, and write rows between two
// transactions of the stream. It outlives rounds of the pipeline; one Beside serves
// one Run. All methods may be called from any goroutine.
type Beside struct {
	mu      sync.Mutex
	feed    *feed // of the round that runs, nil = none
	news    chan struct{}
	watches map[*Watch]struct{}
	// Stale writes rows although the stream has changed their keys since they were
	// read, for the test that shows what the check is good for.
	Stale bool
}

// ErrNotWritten says that rows were not written, or not for certain: the round that
// was to write them has ended, or a writer was detached from it.
var ErrNotWritten = errors.New("the rows are not known to be written")

// NewBeside returns a Beside for Config.Beside.
func NewBeside() *Beside {
	return &Beside{news: make(chan struct{}), watches: map[*Watch]struct{}{}}
}

// Watch notes which keys the stream changes, as the source names them.
type Watch struct {
	b     *Beside
	limit int // collects keys; 0 = looks at given ones

	mu    sync.Mutex
	keys  map[string]map[string]bool // table → key → changed
	count int
	all   bool // a schema change, a truncation, or more keys than the limit
}

// Watch begins to look at keys, by table.
func (b *Beside) Watch(keys map[string][][]byte) *Watch {
	w := &Watch{b: b, keys: map[string]map[string]bool{}}
	for t, list := range keys {
		m := make(map[string]bool, len(list))
		for _, k := range list {
			m[string(k)] = false
		}
		w.keys[t] = m
	}
	return b.add(w)
}

// Collect begins to keep all keys that the stream changes, at most limit.
func (b *Beside) Collect(limit int) *Watch {
	return b.add(&Watch{b: b, limit: limit, keys: map[string]map[string]bool{}})
}

func (b *Beside) add(w *Watch) *Watch {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches[w] = struct{}{}
	return w
}

// Close ends the watch.
func (w *Watch) Close() {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	delete(w.b.watches, w)
}

// Changed reports whether the stream has brought a change of the key since the
// watch began, or may have.
func (w *Watch) Changed(table string, key []byte) bool {
	if w.b.Stale {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all || w.keys[table][string(key)]
}

// Keys returns what was collected; whole is false where that is not all of it.
func (w *Watch) Keys() (keys map[string][][]byte, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys = map[string][][]byte{}
	for t, m := range w.keys {
		for k := range m {
			keys[t] = append(keys[t], []byte(k))
		}
	}
	return keys, !w.all
}

func (w *Watch) note(e *batch.Event) {
	if e.Kind == batch.DDL || e.Kind == batch.Truncate {
		w.all = true
		return
	}
	if !e.Kind.IsRow() {
		return
	}
	table := e.Schema.Name()
	for _, key := range [][]byte{e.Key, e.OldKey} {
		if len(key) == 0 {
			continue
		}
		m := w.keys[table]
		if _, have := m[string(key)]; have {
			m[string(key)] = true
			continue
		}
		if w.limit == 0 || w.all {
			continue
		}
		if w.count++; w.count > w.limit {
			w.all, w.keys = true, map[string]map[string]bool{}
			return
		}
		if m == nil {
			m = map[string]bool{}
			w.keys[table] = m
		}
		m[string(key)] = true
	}
}

// saw tells the watches of a block as the reader sent it.
func (b *Beside) saw(data []byte, reg *batch.Registry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.watches) == 0 {
		return nil
	}
	var blk batch.Block
	if err := blk.Decode(data, reg, batch.Limits{}); err != nil {
		return err
	}
	var e batch.Event
	for i := range blk.Len() {
		if err := blk.Event(i, &e); err != nil {
			return err
		}
		for w := range b.watches {
			w.mu.Lock()
			w.note(&e)
			w.mu.Unlock()
		}
	}
	return nil
}

// begin and end frame a round.
func (b *Beside) begin(f *feed) {
	b.mu.Lock()
	b.feed = f
	b.mu.Unlock()
	b.notify()
}

func (b *Beside) end(f *feed) {
	b.mu.Lock()
	if b.feed == f {
		b.feed = nil
	}
	b.mu.Unlock()
	close(f.gone)
	b.notify()
}

// notify must not be called with b.mu held.
func (b *Beside) notify() {
	b.mu.Lock()
	close(b.news)
	b.news = make(chan struct{})
	b.mu.Unlock()
}

func (b *Beside) now() (*feed, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.feed, b.news
}

// Await waits until every target holds what the stream brings up to p.
func (b *Beside) Await(ctx context.Context, p sdk.Position) error {
	for {
		f, news := b.now()
		if f != nil {
			ok, err := f.holds(p)
			if err == nil && ok {
				return nil
			}
			if err != nil && !retryable(err) {
				return err
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Write puts rows into the stream for one writer, once it has passed high, between
// two transactions of the source. Fill is called at that place, where the stream
// stands still: it appends rows of layouts after the writer's mappings, each in a
// transaction entry that put begins and ends, and leaves out those whose keys have
// changed meanwhile. Write returns when the rows are durable; ErrNotWritten says
// that this is not known. The rows are not counted as read.
func (b *Beside) Write(ctx context.Context, writer string, high sdk.Position, fill func(put *Put) error) error {
	for {
		f, news := b.now()
		if f != nil {
			ok, err := f.passed(high)
			if err != nil && !retryable(err) {
				return err
			}
			if ok {
				e, err := f.insert(writer, fill)
				switch {
				case errors.Is(err, errNothing):
					return nil
				case err != nil:
					return err
				case e != nil:
					return f.durable(ctx, e)
				}
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errNothing = errors.New("nothing to write")

// Put takes rows for Write.
type Put struct {
	out *batch.Builder
	at  []byte
	n   int
}

// Row appends one row: fill is to append it to the builder. Each row is a transaction
// of its own that begins and ends where the stream stands, so that no lane can come
// to stand inside of it.
func (p *Put) Row(fill func(out *batch.Builder) error) error {
	if err := p.out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return err
	}
	if err := fill(p.out); err != nil {
		return err
	}
	p.n++
	return p.out.EndTx(true, p.at, p.at)
}

// Rows returns how many were appended.
func (p *Put) Rows() int { return p.n }

// stand notes where the stream is after a block. A sign of life moves nothing.
func (f *feed) stand(e *entry) {
	f.committedAt = max(f.committedAt, e.committed)
	n := len(e.block.Txs)
	for n > 0 && idle(&e.block, &e.block.Txs[n-1]) {
		n--
	}
	if n == 0 {
		return
	}
	last := &e.block.Txs[n-1]
	f.known = last.Ends && len(last.End) > 0
	if f.known {
		f.at = sdk.Position{Format: e.last.Format, Version: e.last.Version, Source: bytes.Clone(last.End)}
	}
}

// idle reports whether an entry is whole, without a place of its own and without
// anything but heartbeats.
func idle(b *batch.Block, t *batch.Tx) bool {
	if !t.Begins || !t.Ends || len(t.End) > 0 {
		return false
	}
	for i := t.First; i < t.First+t.Count; i++ {
		if b.Kind(i) != batch.Heartbeat {
			return false
		}
	}
	return true
}

// passed reports whether the stream has delivered everything up to p, and whatever
// a target holds.
func (f *feed) passed(p sdk.Position) (bool, error) {
	f.order.Lock()
	at, known, ready := f.at, f.known, f.ready
	f.order.Unlock()
	if !known {
		return false, nil
	}
	if ok, err := f.reached(at, p); !ok || err != nil {
		return false, err
	}
	if ready {
		return true, nil
	}
	for _, x := range f.points {
		if x.Position.IsZero() {
			continue
		}
		if ok, err := f.reached(at, x.Position); !ok || err != nil {
			return false, err
		}
	}
	f.order.Lock()
	f.ready = true
	f.order.Unlock()
	return true, nil
}

func (f *feed) reached(at, p sdk.Position) (bool, error) {
	if samePosition(at, p) || p.IsZero() {
		return true, nil
	}
	o, err := f.cfg.Reader.Source.ComparePositions(at, p)
	return o == sdk.Equal || o == sdk.After, err
}

// holds reports whether every target holds everything up to p.
func (f *feed) holds(p sdk.Position) (bool, error) {
	if at := f.win.stored(); !at.IsZero() {
		return f.reached(at, p)
	}
	for _, x := range f.points {
		if x.Position.IsZero() {
			return false, nil
		}
		if ok, err := f.reached(x.Position, p); !ok || err != nil {
			return false, err
		}
	}
	return len(f.points) > 0, nil
}

// insert adds an entry behind what the stream has delivered. Nil: the stream stands
// inside of a transaction, or nothing may follow.
func (f *feed) insert(writer string, fill func(*Put) error) (*entry, error) {
	f.order.Lock()
	defer f.order.Unlock()
	if !f.known {
		return nil, nil
	}
	p := &Put{out: batch.NewBuilder(batch.Limits{}), at: f.at.Source}
	if err := fill(p); err != nil {
		return nil, err
	}
	if p.n == 0 {
		return nil, errNothing
	}
	data, err := p.out.Finish()
	if err != nil {
		return nil, err
	}
	p.out = nil
	still := batch.NewBuilder(batch.Limits{})
	if err := still.Heartbeat(0); err != nil {
		return nil, err
	}
	still.AppendTx(batch.Tx{Begins: true, Ends: true, Start: f.at.Source, End: f.at.Source})
	empty, err := still.Finish()
	if err != nil {
		return nil, err
	}
	e := &entry{
		data: bytes.Clone(empty), first: f.at, last: f.at, committed: f.committedAt, version: f.clock.next(p.n),
		beside: map[string][]byte{writer: bytes.Clone(data)}, done: make(chan error, 1),
	}
	if err := e.block.Decode(e.data, f.chain.last(), batch.Limits{}); err != nil {
		return nil, fmt.Errorf("rows beside the stream: %w", err)
	}
	if !f.win.addBeside(e) {
		return nil, nil
	}
	return e, nil
}

// durable waits for an entry.
func (f *feed) durable(ctx context.Context, e *entry) error {
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotWritten, ctx.Err())
	case <-f.gone:
	}
	select {
	case err := <-e.done:
		return err
	default:
		return ErrNotWritten
	}
}
