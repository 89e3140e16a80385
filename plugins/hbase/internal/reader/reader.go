package reader

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Reader reads one cluster.
type Reader struct {
	sdk.Numbers
	cfg    Config
	client *rpc.Client

	sources []*source
	byName  map[string]*source
	self    string // id of the cluster that the sink is taken for
	sink    *rpc.Sink
	reg     *rpc.Registration
	next    atomic.Uint64 // position of what was handed over last

	scan  *scan  // nil = all rows that were there are handed over
	state uint64 // version of the item of state given last

	giving *shipped // nil = the next shipment is waited for

	mu      sync.Mutex
	durable uint64
	open    []*shipped // not answered, in the order of their positions
}

var (
	_ sdk.Reader   = (*Reader)(nil)
	_ sdk.Releaser = (*Reader)(nil)
)

// unhurried is the context of a look into the source that is worth finishing
// although the call's own time is over.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
}

// New makes a Reader on a client, which it closes.
func New(cfg Config, client *rpc.Client) (*Reader, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Reader{Numbers: sdk.Numbers{Format: "hbase-stream", Unit: "change"}, cfg: cfg, client: client, byName: map[string]*source{}}
	for i, name := range slices.Sorted(maps.Keys(cfg.Tables)) {
		s, err := newSource(name, cfg.Tables[name], uint32(i+1), "")
		if err != nil {
			return nil, err
		}
		r.sources = append(r.sources, s)
		r.byName[name] = s
	}
	return r, nil
}

// Open registers the sink and sees to the peer. Numbers go on above all points:
// what HBase sends again is counted anew, so that no point can cover it.
func (r *Reader) Open(ctx context.Context, ex sdk.Execution, points []sdk.Point, state []batch.StateItem) (err error) {
	r.shut()
	if len(r.sources) == 0 {
		return sdk.Faultf(sdk.CodeInvalidConfig, "tables: none is named").Suggest("`datalink plugin discover` proposes how to name them")
	}
	start := uint64(0)
	for _, p := range points {
		n, ordinal, err := r.Number(p.Position)
		if err != nil {
			return err
		}
		if ordinal > 0 {
			n++
		}
		start = max(start, n)
	}
	r.next.Store(start)
	r.durable, r.giving, r.open, r.state = start, nil, nil, 0
	for _, s := range r.sources {
		if err := r.scoped(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range state {
		r.state = max(r.state, s.Version)
	}
	if r.scan, err = r.planScan(ctx, points, state); err != nil {
		return err
	}
	if r.sink, err = rpc.ListenSink(r.cfg.Listen, r.cfg.Window); err != nil {
		return sdk.Faultf(sdk.CodeUnavailable, "listen for replication: %v", err).Retry()
	}
	r.self = r.cfg.clusterID(&ex)
	known := rpc.Known{Servers: r.cfg.ZooKeeper, Parent: r.cfg.Parent, ClusterID: r.self, Host: r.cfg.Host, Port: r.sink.Port(), Owner: ex.TaskUID, Shared: r.cfg.Shared}
	if r.reg, err = rpc.Register(ctx, known); errors.Is(err, rpc.ErrTaken) {
		return sdk.Faultf(sdk.CodeForeignClaim, "%v", err).
			Suggest("give each task a peer and a peerParent of its own, or set sharedPeer: true where all of them write at the level versioned")
	} else if err != nil {
		return sdk.Faultf(sdk.CodeUnavailable, "%v", err).Retry()
	}
	if err := r.peer(ctx); err != nil {
		return err
	}
	if r.scan != nil {
		r.scan.run(r)
	}
	return nil
}

func unavailable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case rpc.Final(err):
		return sdk.Faultf(sdk.CodeInternal, "%v", err)
	}
	return sdk.Faultf(sdk.CodeUnavailable, "%v", err).Retry()
}

// Next gives rows of the scan, then changes.
func (r *Reader) Next(ctx context.Context, out *batch.Builder) error {
	for !out.Full() && ctx.Err() == nil {
		more, err := r.step(ctx, out)
		if err != nil {
			return err
		}
		if !more && !out.Empty() {
			return nil
		}
	}
	return ctx.Err()
}

// step gives a piece of what there is. It waits only where out is empty; more says
// that something was there.
func (r *Reader) step(ctx context.Context, out *batch.Builder) (more bool, err error) {
	if r.scan != nil {
		return r.scanned(ctx, out)
	}
	return r.changes(ctx, out)
}

// tx appends a transaction of its own, at the next position.
func (r *Reader) tx(out *batch.Builder, committed int64, body func() error) error {
	if err := out.BeginTx(batch.Tx{Begins: true, Committed: committed}); err != nil {
		return err
	}
	if err := body(); err != nil {
		return err
	}
	return out.EndTx(true, nil, r.Source(r.next.Add(1)))
}

// take receives from a channel; without wait it gives up where nothing is there.
func take[T any](ctx context.Context, c <-chan T, wait bool) (v T, ok bool) {
	if !wait {
		select {
		case v, ok = <-c:
		default:
		}
		return v, ok
	}
	select {
	case v, ok = <-c:
	case <-ctx.Done():
	}
	return v, ok
}

// shut takes the registration away, so that sources wait without holding a thread,
// then ends the sink.
func (r *Reader) shut() {
	if r.reg != nil {
		r.reg.Close()
		r.reg = nil
	}
	if r.sink != nil {
		r.sink.Close()
		r.sink = nil
	}
	if r.scan != nil {
		r.scan.stop()
	}
}

// Close ends the reader.
func (r *Reader) Close(context.Context) error {
	r.shut()
	r.client.Close()
	return nil
}
