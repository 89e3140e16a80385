package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// feed takes blocks from the reader through the common stages into the window.
type feed struct {
	cfg    *Config
	win    *window
	stream SourceStream
	chain  *chain
	clock  *versionClock

	order       sync.Mutex // of what is added to the window
	at          sdk.Position
	known       bool // at is the end of the last transaction, and none is open
	ready       bool // at is not before anything that a target holds
	committedAt int64
	points      []sdk.Point   // as claimed when the round began
	gone        chan struct{} // closed when the round ends

	mu      sync.Mutex // credit that was freed and not yet granted
	records uint64
	bytes   uint64
	wake    chan struct{}
}

// versionClock gives versions: microseconds of the wall clock, always rising.
type versionClock struct{ last uint64 }

// next returns the first of n versions.
func (c *versionClock) next(n int) uint64 {
	v := max(c.last+1, uint64(time.Now().UnixMicro()))
	c.last = v + uint64(max(n, 1)) - 1
	return v
}

// freed is called by the window with its lock held.
func (f *feed) freed(records, bytes int) {
	f.mu.Lock()
	f.records += uint64(records)
	f.bytes += uint64(bytes)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	if b := f.cfg.Beside; b != nil {
		b.notify()
	}
}

// grants returns freed credit to the reader until ctx ends.
func (f *feed) grants(ctx context.Context) error {
	if err := f.stream.Grant(uint64(f.cfg.Window.Records), uint64(f.cfg.Window.Bytes)); err != nil {
		return fmt.Errorf("grant credit to the reader: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
		f.mu.Lock()
		r, b := f.records, f.bytes
		f.records, f.bytes = 0, 0
		f.mu.Unlock()
		if err := f.stream.Grant(r, b); err != nil {
			return fmt.Errorf("grant credit to the reader: %w", err)
		}
	}
}

// errEnd says that the source ended for good.
var errEnd = errors.New("the source has ended")

// receive reads until the stream or ctx ends. Its error is errEnd, the reader's
// fault, or that of a stage.
func (f *feed) receive(ctx context.Context) error {
	for {
		reply, err := f.stream.Recv()
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if len(reply.Block) > 0 {
			if err := f.take(ctx, reply.Block, reply.First, reply.Last); err != nil {
				return err
			}
		}
		switch {
		case reply.Fault != nil:
			return fmt.Errorf("read: %w", reply.Fault)
		case reply.End:
			return errEnd
		}
	}
}

func (f *feed) take(ctx context.Context, data []byte, first, last sdk.Position) error {
	f.order.Lock()
	defer f.order.Unlock()
	bytes := len(data)
	out, before, err := f.chain.run(ctx, data)
	if err != nil {
		return err
	}
	e := &entry{data: out, first: first, last: last, records: before.events, bytes: bytes}
	if err := e.block.Decode(out, f.chain.last(), batch.Limits{}); err != nil {
		return fmt.Errorf("block from %s: %w", describePosition(first), err)
	}
	for i := len(e.block.Txs) - 1; i >= 0 && e.committed == 0; i-- {
		e.committed = e.block.Txs[i].Committed
	}
	e.version = f.clock.next(e.block.Len())
	f.cfg.Observer.Read(before.rows, bytes, last, e.committed)
	e.rows = rows(&e.block)
	if dropped := before.rows - e.rows; dropped > 0 {
		f.cfg.Observer.Filtered("", dropped)
	}
	if b := f.cfg.Beside; b != nil {
		if err := b.saw(data, f.chain.regs[0]); err != nil {
			return err
		}
		f.stand(e)
		defer b.notify()
	}
	failpoint.Hit("pipeline.received")
	f.win.add(e)
	return nil
}

// rows counts the row events of a block; damaged ones are found later, where
// they are used.
func rows(b *batch.Block) int {
	n := 0
	for i := range b.Len() {
		if b.Kind(i).IsRow() {
			n++
		}
	}
	return n
}

func describePosition(p sdk.Position) string {
	if p.IsZero() {
		return "the beginning"
	}
	return fmt.Sprintf("position %s:%q+%d", p.Format, p.Source, p.Ordinal)
}
