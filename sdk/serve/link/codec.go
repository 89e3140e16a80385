package link

import (
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped
	"google.golang.org/grpc/mem"

	"github.com/datalink-go/datalink/sdk/wire"
)

// Codec carries messages of package wire, which code themselves, and leaves all
// others to gRPC's own protobuf codec: on the wire both are protobuf.
type Codec struct {
	proto          encoding.CodecV2
	pool           mem.BufferPool // of messages without much in them
	blocks         blockPool
	sent, received atomic.Int64
}

// NewCodec returns a Codec.
func NewCodec() *Codec {
	return &Codec{proto: encoding.GetCodecV2("proto"), pool: mem.DefaultBufferPool()}
}

// Traffic returns the bytes of messages that the codec has coded and decoded.
func (c *Codec) Traffic() (sent, received int64) { return c.sent.Load(), c.received.Load() }

// Name is that of gRPC's protobuf codec, so that generated stubs understand it.
func (c *Codec) Name() string { return "proto" }

// Marshal encodes v into a buffer of gRPC's pool.
func (c *Codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(wire.Message)
	if !ok {
		return c.proto.Marshal(v)
	}
	pool, n := c.pool, room(m)
	if n >= largeMessage {
		pool = &c.blocks
	}
	buf := pool.Get(n)
	data := m.Append((*buf)[:0])
	c.sent.Add(int64(len(data)))
	if cap(data) > cap(*buf) { // it was larger than thought: gRPC has the only reference
		pool.Put(buf)
		return mem.BufferSlice{mem.SliceBuffer(data)}, nil
	}
	*buf = data
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}, nil
}

// largeMessage is the size from which the buffers come from a pool of their own.
const largeMessage = 32 << 10

// blockPool keeps buffers of the size that blocks have. gRPC's pool has none
// between 32 KiB and 1 MiB and clears all of a buffer each time it gives it out.
type blockPool struct{ pool sync.Pool }

// Get returns a buffer of n bytes, not cleared.
func (p *blockPool) Get(n int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= n {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, n+n/8)
	return &b
}

// Put takes a buffer back.
func (p *blockPool) Put(b *[]byte) { p.pool.Put(b) }

// Unmarshal decodes data into v, which keeps a buffer of its own.
func (c *Codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(wire.Message)
	if !ok {
		return c.proto.Unmarshal(data, v)
	}
	c.received.Add(int64(data.Len()))
	if err := m.Decode(data.Materialize()); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}

// room guesses the encoded size: the blocks, which are nearly all of it, and
// something for the rest.
func room(m wire.Message) int {
	const rest = 1 << 10
	switch m := m.(type) {
	case *wire.ReadReply:
		return len(m.Block) + rest
	case *wire.WriteRequest:
		n := len(m.Block) + rest
		for i := range m.SetAside {
			n += len(m.SetAside[i].Record) + rest
		}
		return n
	case *wire.RangeReply:
		return len(m.Block) + rest
	case *wire.TransformRequest:
		return len(m.Block) + rest
	case *wire.TransformReply:
		return len(m.Block) + rest
	}
	return rest
}
