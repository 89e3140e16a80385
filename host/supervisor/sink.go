package supervisor

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/wire"
)

var _ pipeline.Sink = (*Client)(nil)

// Claim implements pipeline.Sink.
func (c *Client) Claim(ctx context.Context, ex sdk.Execution) (*sdk.Claimed, error) {
	var a wire.ClaimReply
	if err := c.call(ctx, wire.Claim, &wire.ClaimRequest{Execution: ex}, &a); err != nil {
		return nil, err
	}
	return &a.Claimed, nil
}

// Write implements pipeline.Sink.
func (c *Client) Write(ctx context.Context) (pipeline.SinkStream, error) {
	c.streams.Lock()
	defer c.streams.Unlock()
	s, err := c.open(ctx, wire.Write)
	if err != nil {
		return nil, err
	}
	c.writing = s.cancel
	sink := &sinkStream{stream: s}
	c.sink.Store(sink)
	return sink, nil
}

// Charged reports whether the writer has blocks that it has not acknowledged.
func (c *Client) Charged() bool {
	s := c.sink.Load()
	return s != nil && s.sent.Load() > s.acked.Load()
}

// sinkStream remembers which blocks the writer has, so that its death is charged
// to them.
type sinkStream struct {
	*stream
	sent, acked atomic.Uint64
}

// Send implements pipeline.SinkStream.
func (s *sinkStream) Send(q *wire.WriteRequest) error {
	if q.Seq != 0 {
		s.sent.Store(q.Seq)
		s.acked.CompareAndSwap(0, q.Seq-1) // a stream may begin anywhere
	}
	return s.charge(s.send(q))
}

// Recv implements pipeline.SinkStream.
func (s *sinkStream) Recv() (*wire.WriteReply, error) {
	a := new(wire.WriteReply)
	if err := s.RecvMsg(a); err != nil {
		return nil, s.charge(s.c.failure(s.method, err))
	}
	if a.Acked > s.acked.Load() {
		s.acked.Store(a.Acked)
	}
	return a, nil
}

// charge adds to a death what was in flight.
func (s *sinkStream) charge(err error) error {
	var died *pipeline.DiedError
	if errors.As(err, &died) {
		if sent, acked := s.sent.Load(), s.acked.Load(); sent > acked {
			died.FirstSeq, died.LastSeq = acked+1, sent
		}
	}
	return err
}

// Close implements pipeline.SinkStream.
func (s *sinkStream) Close() error {
	select {
	case <-s.c.proc.exited: // it was charged with what it had
	default:
		s.c.sink.CompareAndSwap(s, nil)
	}
	return s.stream.Close()
}
