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
	return in.deliver.Run(ctx, watched{s})
}

// watched is a stream with fail points.
type watched struct{ WriteStream }

func (w watched) Recv() (*wire.WriteRequest, error) {
	q, err := w.WriteStream.Recv()
	if err == nil {
		failpoint.Hit("writer.block.received")
	}
	return q, err
}

func (w watched) Send(a *wire.WriteReply) error {
	failpoint.Hit("writer.reply.before")
	err := w.WriteStream.Send(a)
	if err == nil {
		failpoint.Hit("writer.reply.after")
	}
	return err
}
