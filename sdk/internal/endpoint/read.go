package endpoint

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

func open(ctx context.Context, _ *Endpoint, in *instance, q *wire.OpenRequest) (*wire.Empty, error) {
	r, err := as[sdk.Reader](in, wire.Open, string(manifest.Reader))
	if err != nil {
		return nil, err
	}
	if err := in.reading.clear(ctx); err != nil {
		return nil, err
	}
	start, err := intersect(r, points(q.Points))
	if err != nil {
		return nil, err
	}
	if err := r.Open(ctx, q.Execution, q.Points, q.State); err != nil {
		return nil, err
	}
	failpoint.Hit("reader.opened")
	in.start, in.opened, in.blocks = start, true, nil
	return &wire.Empty{}, nil
}

// points leaves out writers' own rows, which hold no position.
func points(all []sdk.Point) []sdk.Point {
	out := make([]sdk.Point, 0, len(all))
	for _, p := range all {
		if p.Lane != sdk.WriterLane {
			out = append(out, p)
		}
	}
	return out
}

func durable(ctx context.Context, _ *Endpoint, in *instance, q *wire.Position) (*wire.Empty, error) {
	r, err := as[sdk.Reader](in, wire.Durable, string(manifest.Reader))
	if err != nil {
		return nil, err
	}
	failpoint.Hit("reader.durable")
	return &wire.Empty{}, r.Durable(ctx, q.Position)
}

// pager turns calls of Next into framed blocks.
type pager struct {
	reader sdk.Reader
	track  *tracker
}

// fill asks the reader once. It reports whether the block is to be sent at once:
// because it is full, the source has ended, or the reader failed.
func (p *pager) fill(ctx context.Context, out *batch.Builder) (last bool, fault *sdk.Fault) {
	err := p.reader.Next(ctx, out)
	switch {
	case errors.Is(err, io.EOF):
		return true, nil
	case err != nil:
		return false, faultOf(err)
	}
	if open, _ := out.OpenTx(); open {
		return false, sdk.Faultf(sdk.CodeInternal, "reader returned from Next with a transaction entry open, expected EndTx before")
	}
	return false, nil
}

// reply closes the block. A block that cannot be closed after a fault, because
// the fault came in the middle of it, is left out: its changes are read again.
func (p *pager) reply(out *batch.Builder, end bool, fault *sdk.Fault) *wire.ReadReply {
	a := &wire.ReadReply{End: end, Fault: fault}
	if open, _ := out.OpenTx(); open && fault != nil || out.Empty() {
		a.First, a.Last = p.track.last, p.track.last
		return a
	}
	block, err := out.Finish()
	if err == nil {
		a.First, a.Last, err = p.track.place(block)
	}
	if err != nil {
		return &wire.ReadReply{Fault: faultOf(err)}
	}
	a.Block = block
	return a
}

// faultOf is sdk.AsFault for errors that may come from a Builder.
func faultOf(err error) *sdk.Fault {
	f := sdk.AsFault(err)
	if f.Code == sdk.CodeInternal && errors.Is(err, batch.ErrTooLarge) {
		return sdk.Faultf(sdk.CodeTooLarge, "%s", f.Message).Suggest("raise the limits of record and block")
	}
	return f
}

// next is Read for carriers without streams: one block for each call.
func next(ctx context.Context, _ *Endpoint, in *instance, q *wire.NextRequest) (*wire.ReadReply, error) {
	r, err := in.reader(wire.Next)
	if err != nil {
		return nil, err
	}
	if in.blocks == nil {
		in.blocks = &pager{reader: r, track: newTracker(r, in.start, batchLimits(in.limits))}
		in.out = batch.NewBuilder(batchLimits(in.limits))
	}
	in.out.Reset()
	wait, cancel := context.WithTimeout(ctx, time.Duration(q.WaitMicros)*time.Microsecond)
	defer cancel()
	end, fault := in.blocks.fill(wait, in.out)
	if fault != nil && wait.Err() != nil && ctx.Err() == nil && in.out.Empty() {
		fault = nil // nothing came in that time
	}
	return in.blocks.reply(in.out, end, fault), nil
}

func (in *instance) reader(method string) (sdk.Reader, error) {
	r, err := as[sdk.Reader](in, method, string(manifest.Reader))
	if err == nil && !in.opened {
		err = sdk.Faultf(sdk.CodeRefused, "call %s: before Open", method)
	}
	return r, err
}

// Read runs the stream of blocks of a reader: recv gives grants of credit, send
// takes blocks and does not keep them. The first grant starts it; a new Open or
// another Read ends it.
//
// One goroutine builds blocks while another sends: a block goes when it is full,
// or as soon as all earlier ones have arrived at the receiver. A lone change thus
// never waits, and a busy stream fills its blocks.
func (e *Endpoint) Read(ctx context.Context, recv func() (*wire.ReadRequest, error), send func(*wire.ReadReply) error) error {
	ctx, in, done, err := e.stream(ctx, wire.Read)
	if err != nil {
		return err
	}
	defer done()
	r, err := in.reader(wire.Read)
	if err != nil {
		return err
	}
	ctx, leave, err := in.reading.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	c := newCredit()
	go func() { // ends with the stream: the carrier ends recv when Read returns
		defer cancel()
		for {
			g, err := recv()
			if err != nil {
				c.stop()
				return
			}
			c.grant(g.Records, g.Bytes, g.Taken)
		}
	}()
	stop := context.AfterFunc(ctx, c.stop)
	defer stop()
	return (&pump{pager{r, newTracker(r, in.start, batchLimits(in.limits))}, c, send}).run(ctx, in)
}

// pump moves blocks from a reader to a receiver.
type pump struct {
	pager
	credit *credit
	send   func(*wire.ReadReply) error
}

// built is a block on its way to the sender.
type built struct {
	out   *batch.Builder
	end   bool
	fault *sdk.Fault
}

func (p *pump) run(ctx context.Context, in *instance) error {
	if !p.credit.wait() { // the first grant
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	free, ready := make(chan *batch.Builder, 2), make(chan built)
	for range cap(free) {
		free <- batch.NewBuilder(batchLimits(in.limits))
	}
	sent := make(chan error, 1)
	go func() { sent <- p.sendAll(ready, free); cancel(); p.credit.stop() }()
	p.build(ctx, free, ready)
	close(ready)
	return <-sent
}

// build runs the reader until the stream ends.
func (p *pump) build(ctx context.Context, free <-chan *batch.Builder, ready chan<- built) {
	for {
		var b built
		select {
		case b.out = <-free:
		case <-ctx.Done():
			return
		}
		b.out.Reset()
		idle := false
		for {
			b.end, b.fault = p.fill(ctx, b.out)
			if b.end || b.fault != nil || b.out.Full() {
				break
			}
			if b.out.Empty() {
				if ctx.Err() != nil {
					return
				}
				continue
			}
			// The reader has no more for now. Wait for the receiver, and ask the
			// reader once more, since that may have taken a while.
			if idle || p.credit.idle() {
				break
			}
			if idle = p.credit.waitIdle(); !idle {
				return
			}
		}
		if ctx.Err() != nil && b.fault != nil {
			return // the fault is that of the end of the stream
		}
		p.credit.queue()
		select {
		case ready <- b:
		case <-ctx.Done():
			return
		}
		if b.end || b.fault != nil {
			return
		}
	}
}

func (p *pump) sendAll(ready <-chan built, free chan<- *batch.Builder) error {
	for b := range ready {
		failpoint.Hit("reader.block.built")
		if !p.credit.wait() {
			return context.Canceled
		}
		records := uint64(b.out.Len())
		a := p.reply(b.out, b.end, b.fault)
		p.credit.spend(records, uint64(len(a.Block)))
		if err := p.send(a); err != nil {
			return err
		}
		failpoint.Hit("reader.block.sent")
		if a.End || a.Fault != nil {
			return nil
		}
		free <- b.out
	}
	return nil
}
