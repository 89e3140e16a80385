package supervisor

import (
	"context"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Stage returns a transform's client as the pipeline sees it.
func (c *Client) Stage() pipeline.Stage { return stage{c} }

type stage struct{ c *Client }

// Schema implements pipeline.Stage.
func (s stage) Schema(ctx context.Context, in *batch.Schema) (*batch.Schema, error) {
	var a wire.SchemaReply
	err := s.c.call(ctx, wire.TransformSchema, &wire.SchemaRequest{Schema: batch.AppendSchema(nil, in)}, &a)
	switch {
	case err != nil:
		return nil, err
	case a.Drop:
		return nil, nil
	case len(a.Schema) == 0:
		return in, nil
	}
	return batch.DecodeSchema(a.Schema)
}

// Apply implements pipeline.Stage.
func (s stage) Apply(ctx context.Context, block []byte, schemas []uint32) ([]byte, error) {
	q := wire.TransformRequest{Block: block, Schemas: make([]uint64, len(schemas))}
	for i, id := range schemas {
		q.Schemas[i] = uint64(id)
	}
	var a wire.TransformReply
	err := s.c.call(ctx, wire.ApplyTransform, &q, &a)
	return a.Block, err
}
