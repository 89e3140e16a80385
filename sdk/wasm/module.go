package wasm

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/internal/endpoint"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Module answers calls for one plugin and its one instance. It is not safe for
// concurrent use.
type Module struct {
	plugin    sdk.Plugin
	methods   []wire.Method
	log       *slog.Logger
	transform sdk.Transform
	run       *endpoint.Transformer
	in        []byte // request, written by the host
	out       []byte // reply
}

// New returns what Export makes of p, so that tests can call it natively: all of
// it but WebAssembly.
func New(p sdk.Plugin) *Module {
	return &Module{plugin: p, methods: wire.Methods(), log: slog.New(&handler{write: hostLog})}
}

// alloc returns room for a request of n bytes.
func (m *Module) alloc(n uint32) []byte {
	if uint64(cap(m.in)) < uint64(n) {
		m.in = make([]byte, n, uint64(n)+uint64(n)/4)
	}
	m.in = m.in[:n]
	return m.in
}

// Call answers one call; the reply, as wire.AppendReply lays it out, is valid
// until the next.
func (m *Module) Call(method uint32, request []byte) []byte {
	reply, err := m.dispatch(context.Background(), method, request)
	m.out = wire.AppendReply(m.out[:0], reply, err)
	return m.out
}

func (m *Module) dispatch(ctx context.Context, id uint32, request []byte) (wire.Message, error) {
	if id == 0 || id > uint32(len(m.methods)) {
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "method %d is not of this protocol version", id)
	}
	method := m.methods[id-1]
	req := method.NewRequest()
	if err := req.Decode(request); err != nil {
		return nil, err
	}
	switch req := req.(type) {
	case *wire.DescribeRequest:
		return m.describe()
	case *wire.ConfigureRequest:
		return m.configure(req)
	case *wire.SchemaRequest:
		return m.schema(ctx, req)
	case *wire.TransformRequest:
		return m.apply(ctx, req)
	case *wire.CheckRequest:
		if err := m.configured(); err != nil {
			return nil, err
		}
		findings, err := m.transform.Check(ctx)
		return &wire.CheckReply{Findings: findings}, err
	}
	switch method.Name {
	case wire.Ping:
		return &wire.Empty{}, nil
	case wire.Close:
		return &wire.Empty{}, m.close(ctx)
	}
	return nil, sdk.Faultf(sdk.CodeUnimplemented, "a module does not serve %s", method.Name)
}

func (m *Module) describe() (wire.Message, error) {
	text, err := json.Marshal(m.plugin.Manifest("wasm"))
	return &wire.DescribeReply{Manifest: text}, err
}

func (m *Module) configure(req *wire.ConfigureRequest) (wire.Message, error) {
	if req.Role != string(manifest.Transform) || m.plugin.Transform == nil {
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "module %s is no %s: a module serves transforms", m.plugin.Name, req.Role)
	}
	if m.transform != nil {
		return nil, sdk.Faultf(sdk.CodeInternal, "module %s is configured already", m.plugin.Name)
	}
	env := sdk.Env{Log: m.log, Task: req.Task, Role: manifest.Transform, Name: req.Name}
	c, problems, err := m.plugin.Transform.Open(env, req.Config)
	if err != nil || len(problems) > 0 {
		return &wire.ConfigureReply{Problems: problems}, err
	}
	m.transform = c.(sdk.Transform)
	m.run = endpoint.NewTransformer(m.transform, batch.Limits{
		Block: int(req.Limits.Block), Record: int(req.Limits.Record), Full: int(req.Limits.Full), Events: int(req.Limits.Events),
	})
	return &wire.ConfigureReply{Limits: req.Limits}, nil
}

func (m *Module) configured() error {
	if m.transform == nil {
		return sdk.Faultf(sdk.CodeInternal, "module %s is called before it is configured", m.plugin.Name)
	}
	return nil
}

func (m *Module) schema(ctx context.Context, req *wire.SchemaRequest) (wire.Message, error) {
	if err := m.configured(); err != nil {
		return nil, err
	}
	in, err := batch.DecodeSchema(req.Schema)
	if err != nil {
		return nil, err
	}
	out, err := m.run.Schema(ctx, in)
	switch {
	case err != nil:
		return nil, err
	case out == nil:
		return &wire.SchemaReply{Drop: true}, nil
	case out == sdk.Pass:
		return &wire.SchemaReply{Pass: true}, nil
	case out == in:
		return &wire.SchemaReply{}, nil
	}
	return &wire.SchemaReply{Schema: batch.AppendSchema(nil, out)}, nil
}

func (m *Module) apply(ctx context.Context, req *wire.TransformRequest) (wire.Message, error) {
	if err := m.configured(); err != nil {
		return nil, err
	}
	block, err := m.run.Apply(ctx, req.Block, req.Schemas)
	return &wire.TransformReply{Block: block}, err
}

func (m *Module) close(ctx context.Context) error {
	if m.transform == nil {
		return nil
	}
	err := m.transform.Close(ctx)
	m.transform, m.run = nil, nil
	return err
}
