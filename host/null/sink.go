package null

import (
	"context"
	"io"
	"math/bits"
	"sync"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Sink is a writer without a target. It stores no position.
type Sink struct {
	mu     sync.Mutex
	totals Totals
}

// Totals is what a sink has seen.
type Totals struct {
	Rows, Values, Bytes uint64
	Sum                 uint64 // over all values, the same for the same rows in the same order
}

var _ pipeline.Sink = (*Sink)(nil)

// Totals returns what was seen so far.
func (s *Sink) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// Claim implements pipeline.Sink.
func (*Sink) Claim(context.Context, sdk.Execution) (*sdk.Claimed, error) { return &sdk.Claimed{}, nil }

// Write implements pipeline.Sink.
func (s *Sink) Write(context.Context) (pipeline.SinkStream, error) {
	return &stream{sink: s, reg: batch.NewRegistry(), out: make(chan *wire.WriteReply, 1024)}, nil
}

type stream struct {
	sink   *Sink
	reg    *batch.Registry
	block  batch.Block
	vals   []batch.Value
	out    chan *wire.WriteReply
	closed sync.Once
}

// Send reads the block on the spot.
func (s *stream) Send(r *wire.WriteRequest) error {
	reply := &wire.WriteReply{Accepted: r.Seq, Acked: r.Seq, Attempt: r.Attempt}
	t, err := s.read(r.Block)
	if err != nil {
		reply = &wire.WriteReply{Fault: sdk.AsFault(err)}
	}
	s.sink.mu.Lock()
	s.sink.totals.Rows += t.Rows
	s.sink.totals.Values += t.Values
	s.sink.totals.Bytes += t.Bytes
	s.sink.totals.Sum = mix(s.sink.totals.Sum, t.Sum)
	s.sink.mu.Unlock()
	s.out <- reply
	return nil
}

func (s *stream) read(data []byte) (t Totals, err error) {
	if err := s.block.Decode(data, s.reg, batch.Limits{}); err != nil {
		return t, err
	}
	var e batch.Event
	for i := range s.block.Len() {
		if err := s.block.Event(i, &e); err != nil {
			return t, err
		}
		if !e.Kind.IsRow() {
			continue
		}
		t.Rows++
		t.Bytes += uint64(e.Size())
		for _, im := range [...]batch.Image{e.Before, e.After} {
			if im.IsZero() {
				continue
			}
			if s.vals, err = im.Values(s.vals); err != nil {
				return t, err
			}
			for k := range s.vals {
				t.Sum = mix(t.Sum, sum(&s.vals[k]))
			}
			t.Values += uint64(len(s.vals))
		}
	}
	return t, nil
}

func mix(a, b uint64) uint64 {
	return (bits.RotateLeft64(a, 23) ^ b) * 0x9E3779B97F4A7C15
}

func sum(v *batch.Value) uint64 {
	b := v.Bytes()
	h := uint64(v.State)<<56 ^ v.Uint64() ^ uint64(len(b))
	for len(b) >= 8 {
		h = mix(h, uint64(b[0])|uint64(b[1])<<8|uint64(b[2])<<16|uint64(b[3])<<24|uint64(b[4])<<32|uint64(b[5])<<40|uint64(b[6])<<48|uint64(b[7])<<56)
		b = b[8:]
	}
	for _, c := range b {
		h = mix(h, uint64(c))
	}
	return h
}

// Recv implements pipeline.SinkStream.
func (s *stream) Recv() (*wire.WriteReply, error) {
	if r, ok := <-s.out; ok {
		return r, nil
	}
	return nil, io.EOF
}

// CloseSend implements pipeline.SinkStream.
func (s *stream) CloseSend() error { s.closed.Do(func() { close(s.out) }); return nil }

// Close implements pipeline.SinkStream.
func (s *stream) Close() error { return s.CloseSend() }
