package supervisor

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/wire"
)

var _ pipeline.Source = (*Client)(nil)

// ParsePosition implements sdk.Positions.
func (c *Client) ParsePosition(text string) (sdk.Position, error) {
	var a wire.Position
	err := c.call(context.Background(), wire.ParsePosition, &wire.PositionText{Text: text}, &a)
	return a.Position, err
}

// FormatPosition implements sdk.Positions.
func (c *Client) FormatPosition(p sdk.Position) (string, error) {
	var a wire.PositionText
	err := c.call(context.Background(), wire.FormatPosition, &wire.Position{Position: p}, &a)
	return a.Text, err
}

// ComparePositions implements sdk.Positions.
func (c *Client) ComparePositions(a, b sdk.Position) (sdk.Order, error) {
	var r wire.OrderReply
	err := c.call(context.Background(), wire.ComparePositions, &wire.PositionPair{A: a, B: b}, &r)
	return r.Order, err
}

// IntersectPositions implements sdk.Positions.
func (c *Client) IntersectPositions(a, b sdk.Position) (sdk.Position, error) {
	var r wire.Position
	err := c.call(context.Background(), wire.IntersectPositions, &wire.PositionPair{A: a, B: b}, &r)
	return r.Position, err
}

// UpgradePosition implements sdk.Positions.
func (c *Client) UpgradePosition(p sdk.Position) (sdk.Position, error) {
	var r wire.Position
	err := c.call(context.Background(), wire.UpgradePosition, &wire.Position{Position: p}, &r)
	return r.Position, err
}

// Durable implements pipeline.Source.
func (c *Client) Durable(ctx context.Context, upTo sdk.Position) error {
	return c.call(ctx, wire.Durable, &wire.Position{Position: upTo}, &wire.Empty{})
}

// Open implements pipeline.Source.
func (c *Client) Open(ctx context.Context, req *wire.OpenRequest) (pipeline.SourceStream, error) {
	c.streams.Lock()
	defer c.streams.Unlock()
	if c.reading != nil {
		c.reading()
	}
	if err := c.call(ctx, wire.Open, req, &wire.Empty{}); err != nil {
		return nil, err
	}
	s, err := c.open(ctx, wire.Read)
	if err != nil {
		return nil, err
	}
	c.reading = s.cancel
	return &sourceStream{stream: s}, nil
}

// stream is what both kinds of stream have in common.
type stream struct {
	grpc.ClientStream
	c      *Client
	method string
	cancel context.CancelFunc
}

func (c *Client) open(ctx context.Context, method string) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	desc := &grpc.StreamDesc{StreamName: method, ServerStreams: true, ClientStreams: true}
	s, err := c.conn.NewStream(ctx, desc, "/"+wire.Service+"/"+method)
	if err != nil {
		cancel()
		return nil, c.failure(method, err)
	}
	return &stream{s, c, method, cancel}, nil
}

// send sends m. On a stream that the plugin has ended it does nothing: why it
// ended is what Recv returns, and an error here would hide that.
func (s *stream) send(m wire.Message) error {
	err := s.SendMsg(m)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return s.c.failure(s.method, err)
}

// Close ends the stream.
func (s *stream) Close() error {
	s.cancel()
	return nil
}

type sourceStream struct {
	*stream
	sending sync.Mutex // Grant and Recv both send
	taken   uint64
}

// Grant implements pipeline.SourceStream.
func (s *sourceStream) Grant(records, bytes uint64) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.send(&wire.ReadRequest{Records: records, Bytes: bytes, Taken: s.taken})
}

// Recv implements pipeline.SourceStream. It tells the reader that the block has
// arrived.
func (s *sourceStream) Recv() (*wire.ReadReply, error) {
	a := new(wire.ReadReply)
	if err := s.RecvMsg(a); err != nil {
		return nil, s.c.failure(s.method, err)
	}
	if a.End || a.Fault != nil {
		return a, nil
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	s.taken++
	return a, s.send(&wire.ReadRequest{Taken: s.taken})
}
