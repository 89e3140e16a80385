package endpoint

import (
	"context"

	"github.com/datalink-go/datalink/sdk/failpoint"
	"github.com/datalink-go/datalink/sdk/wire"
)

func claim(ctx context.Context, _ *Endpoint, in *instance, q *wire.ClaimRequest) (*wire.ClaimReply, error) {
	if in.deliver == nil {
		return nil, in.lacks(wire.Claim, "writer")
	}
	if err := in.writing.clear(ctx); err != nil { // a claim is for the next stream
		return nil, err
	}
	c, err := in.deliver.Claim(ctx, q.Execution)
	if err != nil {
		return nil, err
	}
	failpoint.Hit("writer.claimed")
	return &wire.ClaimReply{Claimed: *c}, nil
}

// Write runs the stream of blocks of a writer until it ends. Faults of the
// target are replies; an error is the carrier's or ctx's.
func (e *Endpoint) Write(ctx context.Context, s WriteStream) error {
	ctx, in, done, err := e.stream(ctx, wire.Write)
	if err != nil {
		return err
	}
	defer done()
	if in.deliver == nil {
		return in.lacks(wire.Write, "writer")
	}
	ctx, leave, err := in.writing.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return in.deliver.Run(ctx, watch(ctx, s))
}

// watched is a stream whose Recv ends with the context, which a carrier knows
// nothing of, and that has fail points.
type watched struct {
	ctx      context.Context // of the stream
	stream   WriteStream
	requests chan request
}

type request struct {
	q   *wire.WriteRequest
	err error
}

func watch(ctx context.Context, s WriteStream) *watched {
	w := &watched{ctx: ctx, stream: s, requests: make(chan request)}
	go func() { // ends with the stream: the carrier ends Recv when Write returns
		for {
			q, err := s.Recv()
			select {
			case w.requests <- request{q, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return w
}

func (w *watched) Recv() (*wire.WriteRequest, error) {
	select {
	case r := <-w.requests:
		if r.err == nil {
			failpoint.Hit("writer.block.received")
		}
		return r.q, r.err
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	}
}

func (w *watched) Send(a *wire.WriteReply) error {
	failpoint.Hit("writer.reply.before")
	err := w.stream.Send(a)
	if err == nil {
		failpoint.Hit("writer.reply.after")
	}
	return err
}
