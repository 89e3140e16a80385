package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// errDied is what the engine gets from a writer that was killed.
var errDied = errors.New("the writer was killed")

// life decides what becomes of the calls of one writer "process".
type life struct {
	mu     sync.Mutex
	calls  int
	dieAt  int // call after which, or before which, the writer dies; 0 = never
	after  bool
	fault  func(step string) error // a retryable fault in the place of a call
	refuse func(n int) int         // index of a change of n that is refused, -1 = none
	lost   func() (bool, bool)     // the answer to a commit is lost; and it had an effect
	dead   bool
	death  func()
	ledger *ledger
}

// ledger holds what the lanes had committed; it outlives writers.
type ledger struct {
	mu     sync.Mutex
	lanes  []txSet
	broken error
}

func (l *ledger) fail(format string, args ...any) {
	if l.broken == nil {
		l.broken = fmt.Errorf(format, args...)
	}
}

// moved notes a committed position.
func (l *ledger) moved(lane int32, p sdk.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set, err := decodeSet(p)
	if err != nil {
		l.fail("lane %d: %w", lane, err)
		return
	}
	if int(lane) >= len(l.lanes) {
		return
	}
	if !l.lanes[lane].within(set) {
		l.fail("lane %d went back from %s+%d to %s+%d", lane, l.lanes[lane].encode(), l.lanes[lane].upto, p.Source, p.Ordinal)
	}
	l.lanes[lane] = set
}

// claimed notes what a claim returned.
func (l *ledger) claimed(points []sdk.Point) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lanes := make([]txSet, len(points))
	for _, p := range points {
		set, err := decodeSet(p.Position)
		if err != nil {
			l.fail("claim: %w", err)
			return
		}
		if int(p.Lane) < len(lanes) {
			lanes[p.Lane] = set
		}
		for i, old := range l.lanes {
			if (len(l.lanes) != len(points) || i == int(p.Lane)) && !old.within(set) {
				l.fail("claim: lane %d is at %s+%d, lane %d had been at %s+%d", p.Lane, p.Position.Source, p.Position.Ordinal, i, old.encode(), old.upto)
			}
		}
	}
	l.lanes = lanes
}

// before counts a call and says whether it takes place.
func (l *life) before(step string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDied
	}
	l.calls++
	if l.calls == l.dieAt && !l.after {
		l.die()
		return errDied
	}
	if l.fault != nil {
		return l.fault(step)
	}
	return nil
}

// done is what comes after a call that took place.
func (l *life) done(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDied
	}
	if l.calls >= l.dieAt && l.dieAt > 0 && l.after {
		l.die()
		return errDied
	}
	return err
}

// die makes all further calls fail but Rollback, which stands for the end of the
// sessions. It is called with mu held.
func (l *life) die() {
	l.dead = true
	if l.death != nil {
		l.death()
	}
}

// mortal wraps a writer of any level in one that can be killed.
func mortal(t sdk.Target, l *life) sdk.Target {
	base := mortalTarget{t, l}
	switch w := t.(type) {
	case sdk.TransactionalWriter:
		return &mortalTransactional{base, w}
	case sdk.VersionedWriter:
		return &mortalVersioned{base, w}
	case sdk.IdempotentWriter:
		return &mortalIdempotent{base, w}
	}
	return t
}

type mortalTarget struct {
	sdk.Target
	life *life
}

func (m mortalTarget) Claim(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	if err := m.life.before("claim"); err != nil {
		return sdk.Claimed{}, err
	}
	c, err := m.Target.Claim(ctx, ex)
	if err == nil && len(c.Points) > 0 && m.life.ledger != nil {
		m.life.ledger.claimed(c.Points)
	}
	return c, m.life.done(err)
}

func (m mortalTarget) Prepare(ctx context.Context, s *batch.Schema) (sdk.Constraints, error) {
	if err := m.life.before("prepare"); err != nil {
		return sdk.Constraints{}, err
	}
	c, err := m.Target.Prepare(ctx, s)
	return c, m.life.done(err)
}

type mortalTransactional struct {
	mortalTarget
	w sdk.TransactionalWriter
}

func (m *mortalTransactional) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	if err := m.life.before("begin"); err != nil {
		return nil, err
	}
	tx, err := m.w.Begin(ctx, lanes)
	if err != nil {
		return nil, m.life.done(err)
	}
	if err := m.life.done(nil); err != nil {
		_ = tx.Rollback(context.WithoutCancel(ctx))
		return nil, err
	}
	return &mortalTx{Tx: tx, life: m.life}, nil
}

func (m *mortalTransactional) Settle(ctx context.Context, lane int32) (sdk.Point, error) {
	if err := m.life.before("settle"); err != nil {
		return sdk.Point{}, err
	}
	p, err := m.w.Settle(ctx, lane)
	return p, m.life.done(err)
}

type mortalTx struct {
	sdk.Tx
	life *life
	next []sdk.Next
}

func (t *mortalTx) Fence(ctx context.Context, next []sdk.Next) error {
	if err := t.life.before("fence"); err != nil {
		return err
	}
	t.next = slices.Clone(next)
	return t.life.done(t.Tx.Fence(ctx, next))
}

func (t *mortalTx) Apply(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	if err := t.life.before("apply"); err != nil {
		return nil, err
	}
	if t.life.refuse != nil {
		if i := t.life.refuse(c.Len()); i >= 0 {
			return []sdk.RecordError{{Index: i, Err: sdk.Faultf(sdk.CodeUnfit, "refused, as the kit wants it")}}, t.life.done(nil)
		}
	}
	r, err := t.Tx.Apply(ctx, c)
	return r, t.life.done(err)
}

func (t *mortalTx) Commit(ctx context.Context) error {
	if err := t.life.before("commit"); err != nil {
		return err
	}
	lost, effect := false, false
	if t.life.lost != nil {
		lost, effect = t.life.lost()
	}
	if lost && !effect {
		_ = t.Tx.Rollback(ctx)
		return t.life.done(sdk.ErrCommitUnknown)
	}
	err := t.Tx.Commit(ctx)
	if err == nil {
		if t.life.ledger != nil {
			for _, n := range t.next {
				t.life.ledger.moved(n.Lane, n.Position)
			}
		}
		if lost {
			err = sdk.ErrCommitUnknown
		}
	}
	return t.life.done(err)
}

type mortalVersioned struct {
	mortalTarget
	w sdk.VersionedWriter
}

func (m *mortalVersioned) ApplyAt(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	if err := m.life.before("apply"); err != nil {
		return nil, err
	}
	r, err := m.w.ApplyAt(ctx, c)
	return r, m.life.done(err)
}

type mortalIdempotent struct {
	mortalTarget
	w sdk.IdempotentWriter
}

func (m *mortalIdempotent) Apply(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	if err := m.life.before("apply"); err != nil {
		return nil, err
	}
	r, err := m.w.Apply(ctx, c)
	return r, m.life.done(err)
}
