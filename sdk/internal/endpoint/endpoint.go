package endpoint

import (
	"context"
	"log/slog"
	"sync"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Deliverer runs a writer: it claims the target and writes the stream of blocks
// in the order Fence → Apply → Commit.
type Deliverer interface {
	Claim(ctx context.Context, ex sdk.Execution) (*sdk.Claimed, error)
	Run(ctx context.Context, stream WriteStream) error
}

// WriteStream is the host's side of a stream of blocks. Recv gives io.EOF when no
// more come. Recv and Send may run side by side.
type WriteStream interface {
	Recv() (*wire.WriteRequest, error)
	Send(*wire.WriteReply) error
}

// Options are what an Endpoint needs from its carrier.
type Options struct {
	Kind   string       // of the plugin: "process" or "wasm"
	Log    *slog.Logger // nil = none
	Limits wire.Limits  // of the carrier; 0 = none of its own
	// SetLevel sets the level of Log; nil = it has none.
	SetLevel func(slog.Level)
	// Deliver makes the Deliverer of a writer; nil = the carrier serves none.
	Deliver func(target sdk.Target, limits wire.Limits, log *slog.Logger) (Deliverer, error)
}

// Endpoint is one plugin at work. It is safe for concurrent use.
type Endpoint struct {
	plugin   *sdk.Plugin
	opts     Options
	handlers map[string]handler

	one sync.Mutex // one call of the instance at a time

	mu        sync.Mutex
	in        *instance
	streams   sync.WaitGroup
	closing   context.Context
	close     context.CancelFunc
	closed    bool
	closeOnce sync.Once
	closeErr  error
}

// instance is what Configure made.
type instance struct {
	role      manifest.Role
	conn      sdk.Connector
	limits    wire.Limits
	deliver   Deliverer
	transform *Transformer
	opened    bool
	start     sdk.Position // of the reader, as opened
	blocks    *pager       // for Next, made at its first call after Open
	out       *batch.Builder
	reading   slot
	writing   slot
}

// New returns an Endpoint for p.
func New(p *sdk.Plugin, opts Options) *Endpoint {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	e := &Endpoint{plugin: p, opts: opts, handlers: handlers()}
	e.closing, e.close = context.WithCancel(context.Background())
	return e
}

// Call answers a call that is no stream. Errors are faults, see sdk.AsFault.
func (e *Endpoint) Call(ctx context.Context, method string, req wire.Message) (wire.Message, error) {
	h, ok := e.handlers[method]
	if !ok {
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "call %s: not one of this protocol version", method)
	}
	if !h.beside {
		e.one.Lock()
		defer e.one.Unlock()
	}
	if method == wire.Close {
		return &wire.Empty{}, e.Close(ctx)
	}
	var in *instance
	if !h.unconfigured {
		var err error
		if in, err = e.instance(method); err != nil {
			return nil, err
		}
	}
	return h.call(ctx, e, in, req)
}

func (e *Endpoint) instance(method string) (*instance, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, sdk.Faultf(sdk.CodeRefused, "call %s: the connector is closed", method)
	case e.in == nil:
		return nil, sdk.Faultf(sdk.CodeRefused, "call %s: before Configure", method)
	}
	return e.in, nil
}

// stream registers a stream and returns its context, which ends with Close.
func (e *Endpoint) stream(ctx context.Context, method string) (context.Context, *instance, func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.in == nil {
		return nil, nil, nil, sdk.Faultf(sdk.CodeRefused, "call %s: the connector is closed or not configured", method)
	}
	e.streams.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.closing, cancel)
	return ctx, e.in, func() { stop(); cancel(); e.streams.Done() }, nil
}

// Close ends the streams and closes the instance.
func (e *Endpoint) Close(ctx context.Context) error {
	e.closeOnce.Do(func() {
		e.mu.Lock()
		e.closed = true
		in := e.in
		e.mu.Unlock()
		e.close()
		failpoint.Hit("connector.close.before")
		done := make(chan struct{})
		go func() { e.streams.Wait(); close(done) }()
		select {
		case <-done:
		case <-ctx.Done():
			e.closeErr = sdk.Faultf(sdk.CodeDeadline, "close %s: a stream did not end in time", e.plugin.Name)
			return
		}
		if in != nil {
			e.closeErr = in.conn.Close(ctx)
		}
	})
	return e.closeErr
}

// batchLimits turns the limits of the protocol into those of a block.
func batchLimits(l wire.Limits) batch.Limits {
	return batch.Limits{Block: int(l.Block), Record: int(l.Record), Full: int(l.Full), Events: int(l.Events)}
}

func (in *instance) lacks(method, ability string) error {
	return sdk.Faultf(sdk.CodeUnimplemented, "call %s: the instance is a %s, expected a %s", method, in.role, ability)
}

// as asserts an optional ability of the instance.
func as[T any](in *instance, method, ability string) (T, error) {
	v, ok := in.conn.(T)
	if !ok {
		return v, sdk.Faultf(sdk.CodeUnimplemented, "call %s: the %s has not the ability %q", method, in.role, ability)
	}
	return v, nil
}
