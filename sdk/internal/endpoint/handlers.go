package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// handler answers one method.
type handler struct {
	unconfigured bool // may come before Configure
	beside       bool // runs beside other calls
	call         func(ctx context.Context, e *Endpoint, in *instance, req wire.Message) (wire.Message, error)
}

// handle makes a handler of a function with the method's own types.
func handle[Q, A wire.Message](f func(ctx context.Context, e *Endpoint, in *instance, req Q) (A, error)) handler {
	return handler{call: func(ctx context.Context, e *Endpoint, in *instance, req wire.Message) (wire.Message, error) {
		q, ok := req.(Q)
		if !ok {
			return nil, fmt.Errorf("request is a %T, want %T", req, q)
		}
		a, err := f(ctx, e, in, q)
		if err != nil {
			return nil, err
		}
		return a, nil
	}}
}

func before(h handler) handler { h.unconfigured = true; return h }
func beside(h handler) handler { h.beside = true; return h }

// handlers returns the methods by name. Those of the streams are not among them.
func handlers() map[string]handler {
	return map[string]handler{
		wire.Describe: before(handle(func(_ context.Context, e *Endpoint, _ *instance, q *wire.DescribeRequest) (*wire.DescribeReply, error) {
			return e.describe(q)
		})),
		wire.Configure: before(handle(func(ctx context.Context, e *Endpoint, _ *instance, q *wire.ConfigureRequest) (*wire.ConfigureReply, error) {
			return e.configure(ctx, q)
		})),
		wire.Close: before(handler{}),
		wire.Ping: beside(before(handle(func(context.Context, *Endpoint, *instance, *wire.Empty) (*wire.Empty, error) {
			return &wire.Empty{}, nil
		}))),
		wire.Check:    handle(check),
		wire.Discover: handle(discover),
		wire.Release:  handle(release),

		wire.ParsePosition:      handle(parsePosition),
		wire.FormatPosition:     handle(formatPosition),
		wire.ComparePositions:   handle(comparePositions),
		wire.IntersectPositions: handle(intersectPositions),
		wire.UpgradePosition:    handle(upgradePosition),

		wire.Open:      handle(open),
		wire.Next:      handle(next),
		wire.Durable:   beside(handle(durable)),
		wire.ReadRange: handle(readRange),
		wire.ReadKeys:  handle(readKeys),
		wire.Snapshot:  beside(handle(snapshot)),

		wire.Claim: handle(claim),
		wire.Scan:  handle(scan),

		wire.TransformSchema: handle(transformSchema),
		wire.ApplyTransform:  handle(applyTransform),
	}
}

func check(ctx context.Context, _ *Endpoint, in *instance, _ *wire.CheckRequest) (*wire.CheckReply, error) {
	f, err := in.conn.Check(ctx)
	return &wire.CheckReply{Findings: f}, err
}

// Sizes of a page of Discover.
const (
	pageSchemas = 500
	pageBytes   = 1 << 20
)

func discover(ctx context.Context, _ *Endpoint, in *instance, q *wire.DiscoverRequest) (*wire.DiscoverReply, error) {
	d, err := as[sdk.Discoverer](in, wire.Discover, manifest.CanDiscover)
	if err != nil {
		return nil, err
	}
	var a wire.DiscoverReply
	skip, size := q.After != "", 0
	err = d.Discover(ctx, func(s *batch.Schema) error {
		if skip {
			skip = s.Name() != q.After
			return nil
		}
		if len(a.Schemas) == pageSchemas || size >= pageBytes {
			a.More = true
			return io.EOF
		}
		def := batch.AppendSchema(nil, s)
		a.Schemas, size = append(a.Schemas, def), size+len(def)
		return nil
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if skip {
		return nil, sdk.Faultf(sdk.CodeUnknownTable, "discover: no table %s to go on after", q.After)
	}
	return &a, nil
}

func release(ctx context.Context, _ *Endpoint, in *instance, q *wire.ReleaseRequest) (*wire.Empty, error) {
	r, err := as[sdk.Releaser](in, wire.Release, manifest.CanRelease)
	if err != nil {
		return nil, err
	}
	return &wire.Empty{}, r.Release(ctx, q.TaskUID)
}

func parsePosition(_ context.Context, _ *Endpoint, in *instance, q *wire.PositionText) (*wire.Position, error) {
	r, err := as[sdk.Positions](in, wire.ParsePosition, "positions")
	if err != nil {
		return nil, err
	}
	p, err := r.ParsePosition(q.Text)
	return &wire.Position{Position: p}, err
}

func formatPosition(_ context.Context, _ *Endpoint, in *instance, q *wire.Position) (*wire.PositionText, error) {
	r, err := as[sdk.Positions](in, wire.FormatPosition, "positions")
	if err != nil {
		return nil, err
	}
	text, err := r.FormatPosition(q.Position)
	return &wire.PositionText{Text: text}, err
}

func comparePositions(_ context.Context, _ *Endpoint, in *instance, q *wire.PositionPair) (*wire.OrderReply, error) {
	r, err := as[sdk.Positions](in, wire.ComparePositions, "positions")
	if err != nil {
		return nil, err
	}
	o, err := r.ComparePositions(q.A, q.B)
	return &wire.OrderReply{Order: o}, err
}

func intersectPositions(_ context.Context, _ *Endpoint, in *instance, q *wire.PositionPair) (*wire.Position, error) {
	r, err := as[sdk.Positions](in, wire.IntersectPositions, "positions")
	if err != nil {
		return nil, err
	}
	p, err := r.IntersectPositions(q.A, q.B)
	return &wire.Position{Position: p}, err
}

func upgradePosition(_ context.Context, _ *Endpoint, in *instance, q *wire.Position) (*wire.Position, error) {
	r, err := as[sdk.Positions](in, wire.UpgradePosition, "positions")
	if err != nil {
		return nil, err
	}
	p, err := r.UpgradePosition(q.Position)
	return &wire.Position{Position: p}, err
}

func transformSchema(ctx context.Context, _ *Endpoint, in *instance, q *wire.SchemaRequest) (*wire.SchemaReply, error) {
	if in.transform == nil {
		return nil, in.lacks(wire.TransformSchema, "transform")
	}
	s, err := batch.DecodeSchema(q.Schema)
	if err != nil {
		return nil, err
	}
	out, err := in.transform.Schema(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case out == nil:
		return &wire.SchemaReply{Drop: true}, nil
	case out == s:
		return &wire.SchemaReply{}, nil
	}
	return &wire.SchemaReply{Schema: batch.AppendSchema(nil, out)}, nil
}

func applyTransform(ctx context.Context, _ *Endpoint, in *instance, q *wire.TransformRequest) (*wire.TransformReply, error) {
	if in.transform == nil {
		return nil, in.lacks(wire.ApplyTransform, "transform")
	}
	out, err := in.transform.Apply(ctx, q.Block, q.Schemas)
	return &wire.TransformReply{Block: out}, err
}
