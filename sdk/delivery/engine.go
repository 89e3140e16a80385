package delivery

import (
	"context"
	"fmt"
	"sync"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Stream is the host's side of a stream of blocks. Recv and Send may run side by
// side. Recv gives io.EOF when no more come, and an error when the context given
// to Run, or that of the call behind it, ends. The bytes of a request stay
// unchanged until it is acknowledged or the stream ends.
type Stream interface {
	Recv() (*wire.WriteRequest, error)
	Send(*wire.WriteReply) error
}

// Engine delivers to one target. Claim and Run are called one after the other.
type Engine struct {
	target sdk.Target
	tw     sdk.TransactionalWriter
	vw     sdk.VersionedWriter
	iw     sdk.IdempotentWriter
	cfg    Config

	// Prepare has the target for itself; target transactions run side by side.
	prepare sync.RWMutex

	ex      sdk.Execution
	claimed *sdk.Claimed
}

// New makes an Engine. The target must implement one of the writer interfaces.
func New(target sdk.Target, cfg Config) (*Engine, error) {
	e := &Engine{target: target, cfg: cfg.withDefaults()}
	switch w := target.(type) {
	case sdk.TransactionalWriter:
		e.tw = w
	case sdk.VersionedWriter:
		e.vw = w
	case sdk.IdempotentWriter:
		e.iw = w
	default:
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "writer %T: it is none of transactional, versioned and idempotent", target)
	}
	return e, nil
}

// Claim takes the target for the execution and returns what it holds. It comes
// before each Run.
func (e *Engine) Claim(ctx context.Context, ex sdk.Execution) (*sdk.Claimed, error) {
	e.claimed = nil
	if ex.Lanes <= 0 {
		ex.Lanes = e.cfg.Lanes
	}
	if e.tw == nil {
		ex.Lanes = 1
	}
	c, err := e.target.Claim(ctx, ex)
	if err != nil {
		return nil, err
	}
	if err := checkPoints(&c, ex); err != nil {
		return nil, err
	}
	e.ex, e.claimed = ex, &c
	return &c, nil
}

// checkPoints demands lanes 0 to n-1, each once, or none at all, and that they
// were made under the execution's mapping.
func checkPoints(c *sdk.Claimed, ex sdk.Execution) error {
	points := c.Points
	if c.Mapping != "" && c.Mapping != ex.Mapping {
		return sdk.Faultf(sdk.CodeRefused, "claim of task %s, writer %s: the lanes stand at different positions under mapping %q, the task has mapping %q",
			ex.Task, ex.Writer, c.Mapping, ex.Mapping).
			Suggest("run once with the old mapping until the task has drained, then change it")
	}
	seen := make([]bool, len(points))
	for _, p := range points {
		if p.Lane < 0 || int(p.Lane) >= len(points) || seen[p.Lane] {
			return sdk.Faultf(sdk.CodeInternal, "claim of task %s, writer %s: point of lane %d among %d, expected lanes 0 to %d, each once",
				ex.Task, ex.Writer, p.Lane, len(points), len(points)-1)
		}
		seen[p.Lane] = true
	}
	return nil
}

// Run serves one stream of blocks until it ends, a fault ends it, or ctx ends.
// A fault has been sent as the last reply and is returned too.
func (e *Engine) Run(ctx context.Context, s Stream) error {
	c := e.claimed
	if c == nil {
		return sdk.Faultf(sdk.CodeInternal, "write stream without a claim before it")
	}
	e.claimed = nil
	err := newRun(e, c, s).run(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	f := sdk.AsFault(err)
	if serr := s.Send(&wire.WriteReply{Fault: f}); serr != nil {
		return fmt.Errorf("%w; and the reply could not be sent: %w", err, serr)
	}
	return err
}
