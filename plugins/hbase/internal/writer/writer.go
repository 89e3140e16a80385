package writer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Writer writes into one cluster.
type Writer struct {
	cfg        Config
	store      Store
	durability rpc.Durability
	attributes []rpc.Attribute

	mu     sync.Mutex // Apply and Prepare are not called side by side; Close may be
	plans  map[*batch.Schema]*plan
	enc    encoder
	clock  eventClock
	closed bool

	row     claimRow
	checked time.Time // when the row was last seen to be ours
}

var (
	_ sdk.VersionedWriter = (*Writer)(nil)
	_ sdk.Releaser        = (*Writer)(nil)
)

// New makes a Writer on a store, which it closes.
func New(cfg Config, store Store) (*Writer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	marks, err := cfg.marks()
	if err != nil {
		return nil, err
	}
	return &Writer{cfg: cfg, store: store, durability: durabilities[cfg.Durability], attributes: marks, plans: map[*batch.Schema]*plan{}}, nil
}

// Close ends the client.
func (w *Writer) Close(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		w.store.Close()
	}
	return nil
}

// Prepare plans the columns of a schema and makes its table ready.
func (w *Writer) Prepare(ctx context.Context, s *batch.Schema) (sdk.Constraints, error) {
	p, err := newPlan(&w.cfg, s)
	if err != nil {
		return sdk.Constraints{}, err
	}
	if err := w.ready(ctx, p); err != nil {
		return sdk.Constraints{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans[s] = p
	return sdk.Constraints{}, nil
}

// fault gives an error of the client its code.
func fault(err error) error {
	var f *sdk.Fault
	var re *rpc.RemoteError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return err
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, rpc.ErrNoTable), errors.Is(err, rpc.ErrNoFamily):
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%v", err).Suggest("create the table and its families, or set create: auto")
	case errors.As(err, &re) && rpc.Final(err):
		if rpc.Unauthorized(err) {
			return sdk.Faultf(sdk.CodeUnauthorized, "%v", err)
		}
		return sdk.Faultf(sdk.CodeInternal, "%v", err)
	}
	return sdk.Faultf(sdk.CodeUnavailable, "%v", err).Retry()
}
