package endpoint

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

func (e *Endpoint) describe(*wire.DescribeRequest) (*wire.DescribeReply, error) {
	data, err := json.Marshal(e.plugin.Manifest(e.opts.Kind))
	if err != nil {
		return nil, err
	}
	return &wire.DescribeReply{Manifest: data}, nil
}

// configure makes the instance. Problems of the configuration are an answer, not
// an error, and leave the endpoint as it was.
func (e *Endpoint) configure(_ context.Context, req *wire.ConfigureRequest) (*wire.ConfigureReply, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.in != nil || e.closed {
		return nil, sdk.Faultf(sdk.CodeRefused, "configure %s: it is configured already, one process serves one instance", e.plugin.Name)
	}
	role := manifest.Role(req.Role)
	factory := e.plugin.Factory(role)
	if factory == nil {
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "configure %s: it is no %s", e.plugin.Name, req.Role)
	}
	if err := failpoint.Arm(req.FailPoints...); err != nil {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "configure %s: %v", e.plugin.Name, err)
	}
	if req.LogLevel != "" && e.opts.SetLevel != nil {
		var l slog.Level
		if err := l.UnmarshalText([]byte(req.LogLevel)); err != nil {
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "configure %s: log level %q, expected debug, info, warn or error", e.plugin.Name, req.LogLevel)
		}
		e.opts.SetLevel(l)
	}
	log := e.opts.Log.With("task", req.Task)
	conn, problems, err := factory.Open(sdk.Env{Log: log, Task: req.Task, Role: role, Name: req.Name}, req.Config)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return &wire.ConfigureReply{Problems: problems}, nil
	}
	in := &instance{role: role, conn: conn, limits: orDefaults(Smaller(e.opts.Limits, req.Limits))}
	facet := factory.Facet()
	reply := &wire.ConfigureReply{Limits: in.limits, Capabilities: facet.Capabilities, Level: string(facet.Level)}
	if n, ok := conn.(sdk.Narrowed); ok {
		lacks := n.Without()
		reply.Capabilities = slices.DeleteFunc(slices.Clone(reply.Capabilities), func(c string) bool { return slices.Contains(lacks, c) })
	}
	switch c := conn.(type) {
	case sdk.Target:
		if e.opts.Deliver == nil {
			return nil, sdk.Faultf(sdk.CodeUnimplemented, "configure %s: this kind of plugin serves no writers", e.plugin.Name)
		}
		if in.deliver, err = e.opts.Deliver(c, in.limits, log); err != nil {
			return nil, err
		}
		if l, ok := conn.(sdk.Laned); ok {
			reply.Lanes = uint32(l.Lanes())
		}
	case sdk.Transform:
		in.transform = NewTransformer(c, batchLimits(in.limits))
	}
	e.in = in
	return reply, nil
}
