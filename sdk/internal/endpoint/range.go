package endpoint

import (
	"context"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

func readRange(ctx context.Context, _ *Endpoint, in *instance, q *wire.RangeRequest) (*wire.RangeReply, error) {
	r, err := as[sdk.RangeReader](in, wire.ReadRange, manifest.CanReadRange)
	if err != nil {
		return nil, err
	}
	rng, err := decodeRange(q)
	if err != nil {
		return nil, err
	}
	out := batch.NewBuilder(batchLimits(in.limits))
	placed, err := r.ReadRange(ctx, rng, out)
	if err != nil {
		return nil, err
	}
	return rangeReply(out, placed)
}

func readKeys(ctx context.Context, _ *Endpoint, in *instance, q *wire.KeysRequest) (*wire.RangeReply, error) {
	r, err := as[sdk.KeyReader](in, wire.ReadKeys, manifest.CanReadKeys)
	if err != nil {
		return nil, err
	}
	s, err := batch.DecodeSchema(q.Schema)
	if err != nil {
		return nil, err
	}
	out := batch.NewBuilder(batchLimits(in.limits))
	placed, err := r.ReadKeys(ctx, s, q.Keys, out)
	if err != nil {
		return nil, err
	}
	return rangeReply(out, placed)
}

func scan(ctx context.Context, _ *Endpoint, in *instance, q *wire.RangeRequest) (*wire.RangeReply, error) {
	r, err := as[sdk.TargetScanner](in, wire.Scan, manifest.CanScan)
	if err != nil {
		return nil, err
	}
	rng, err := decodeRange(q)
	if err != nil {
		return nil, err
	}
	out := batch.NewBuilder(batchLimits(in.limits))
	rest, err := r.Scan(ctx, rng, out)
	if err != nil {
		return nil, err
	}
	return rangeReply(out, sdk.Placed{Rest: rest})
}

func decodeRange(q *wire.RangeRequest) (sdk.Range, error) {
	s, err := batch.DecodeSchema(q.Schema)
	return sdk.Range{Schema: s, Lo: q.Lo, Hi: q.Hi, Rows: int(q.Rows), Keys: q.Keys}, err
}

func rangeReply(out *batch.Builder, p sdk.Placed) (*wire.RangeReply, error) {
	block, err := out.Finish()
	if err != nil {
		return nil, err
	}
	a := &wire.RangeReply{Block: block, Low: p.Low, High: p.High}
	if p.Rest.Schema != nil {
		a.More, a.RestLo, a.RestHi = true, p.Rest.Lo, p.Rest.Hi
	}
	return a, nil
}
