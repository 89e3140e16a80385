package scan

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Job is a table and where to begin in it.
type Job struct {
	Table *Table
	Lo    []byte   // begin after this key; empty = at the beginning
	Stops [][]byte // keys, ascending, at which a chunk must end
}

// Options of a Run. Zero values are not valid.
type Options struct {
	Parallel int // connections
	Rows     int // of a chunk
	Bytes    int // of a chunk, about
}

// Chunk holds the rows with Lo < key <= Hi, all of them.
type Chunk struct {
	Table  *Table
	Lo, Hi []byte // empty = the table's end; both empty for a part of a keyless table
	First  bool   // the first of its job
	Last   bool   // the last of its table
	Rows   int
	Block  []byte // one transaction with Rows events
}

// Run is a scan under way.
type Run struct {
	opt    Options
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	order  chan *task
	work   chan *task
	now    *task

	mu  sync.Mutex
	err error
}

type task struct {
	table       *Table
	lo, hi      []byte
	first, last bool
	out         chan *Chunk // closed at the end; one that ends in an error is closed without
}

// Start begins to read the jobs, one after the other.
func Start(src Source, jobs []Job, opt Options) *Run {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Run{opt: opt, ctx: ctx, cancel: cancel, order: make(chan *task, opt.Parallel), work: make(chan *task)}
	r.wg.Add(1 + opt.Parallel)
	go func() {
		defer r.wg.Done()
		defer close(r.order)
		defer close(r.work)
		r.note(r.plan(src, jobs))
	}()
	for range opt.Parallel {
		go func() {
			defer r.wg.Done()
			r.note(r.read(src))
		}()
	}
	return r
}

// note keeps the first error and ends the others.
func (r *Run) note(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	if r.err == nil && r.ctx.Err() == nil {
		r.err = err
	}
	r.mu.Unlock()
	r.cancel()
}

// Close ends the run and waits for its connections.
func (r *Run) Close() {
	r.cancel()
	r.wg.Wait()
}

// Next returns the next chunk, io.EOF after the last one.
func (r *Run) Next(ctx context.Context) (*Chunk, error) {
	for {
		if r.now == nil {
			select {
			case t, ok := <-r.order:
				if !ok {
					return nil, r.end()
				}
				r.now = t
			case <-r.ctx.Done():
				return nil, r.end()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		select {
		case c, ok := <-r.now.out:
			if ok {
				return c, nil
			}
			r.now = nil
		case <-r.ctx.Done():
			return nil, r.end()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *Run) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err != nil:
		return r.err
	case r.ctx.Err() != nil:
		return errors.New("scan: closed")
	}
	return io.EOF
}

// plan cuts the jobs into tasks.
func (r *Run) plan(src Source, jobs []Job) error {
	s, err := src.Open(r.ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, j := range jobs {
		lo, stops, first := j.Lo, j.Stops, true
		for {
			t := &task{table: j.Table, lo: lo, first: first, out: make(chan *Chunk, 1)}
			if len(j.Table.Schema.Key) > 0 {
				var stop []byte
				if len(stops) > 0 {
					stop = stops[0]
				}
				if t.hi, err = s.Bound(r.ctx, j.Table, lo, stop, r.opt.Rows); err != nil {
					return err
				}
				if stop != nil && (t.hi == nil || bytes.Equal(t.hi, stop)) {
					t.hi, stops = stop, stops[1:]
				}
			}
			t.last = t.hi == nil
			for _, to := range []chan *task{r.order, r.work} {
				select {
				case to <- t:
				case <-r.ctx.Done():
					return r.ctx.Err()
				}
			}
			if t.last {
				break
			}
			lo, first = t.hi, false
		}
	}
	return nil
}

// read works off tasks.
func (r *Run) read(src Source) error {
	var s Session
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	for t := range r.work {
		if s == nil {
			var err error
			if s, err = src.Open(r.ctx); err != nil {
				return err
			}
		}
		if err := r.task(s, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) task(s Session, t *task) error {
	out := batch.NewBuilder(batch.Limits{Full: r.opt.Bytes, Events: r.opt.Rows})
	lo, first := t.lo, t.first
	// Ordinal 0 is for what stands before the rows; those of a table without a key
	// are counted through all of its chunks.
	next := uint64(1)
	if err := out.BeginTx(batch.Tx{Begins: true, Ordinal: next}); err != nil {
		return err
	}
	send := func(last bool) error {
		if len(t.table.Schema.Key) == 0 {
			_, next = out.OpenTx()
		}
		if err := out.EndTx(true, nil, nil); err != nil {
			return err
		}
		c := &Chunk{Table: t.table, Lo: lo, Hi: t.hi, First: first, Last: last && t.last, Rows: out.Len()}
		data, err := out.Finish()
		if err != nil {
			return err
		}
		c.Block = bytes.Clone(data)
		if !last && len(t.table.Schema.Key) > 0 {
			if c.Hi, err = lastKey(c.Block); err != nil {
				return err
			}
		}
		select {
		case t.out <- c:
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
		out.Reset()
		out.Forget()
		lo, first = c.Hi, false
		return out.BeginTx(batch.Tx{Begins: true, Ordinal: next})
	}
	err := s.Rows(r.ctx, t.table, t.lo, t.hi, out, func() error {
		// A chunk that was planned full ends at its bound, not before it.
		if out.Size() >= r.opt.Bytes || len(t.table.Schema.Key) == 0 && out.Len() >= r.opt.Rows {
			return send(false)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := send(true); err != nil {
		return err
	}
	close(t.out)
	return nil
}

func lastKey(block []byte) ([]byte, error) {
	var b batch.Block
	if err := b.Decode(block, batch.NewRegistry(), batch.Limits{}); err != nil {
		return nil, err
	}
	var e batch.Event
	if err := b.Event(b.Len()-1, &e); err != nil {
		return nil, err
	}
	return bytes.Clone(e.Key), nil
}
