package conformance_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/conformance"
)

// fast is a clock on which a second takes a millisecond.
type fast struct{ begin time.Time }

const speed = 1000

func (c fast) Now() time.Time                       { return c.begin.Add(time.Since(c.begin) * speed) }
func (fast) After(d time.Duration) <-chan time.Time { return time.After(d / speed) }
func (fast) Boottime() int64                        { return 0 }

// slowStore is a store whose target transactions take about a second on that clock,
// so that lanes without work store their positions between those of others.
type slowStore struct {
	databaseStore
	pace *pace
}

type pace struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	d := time.Duration(max(0, p.r.IntN(4000)-1500)) * time.Millisecond / speed
	p.mu.Unlock()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slowStore) Open(ctx context.Context) (sdk.Target, error) {
	t, err := s.databaseStore.Open(ctx)
	return slowTarget{t.(transactionalTarget), s.pace}, err
}

type transactionalTarget interface {
	sdk.TransactionalWriter
	sdk.Target
}

type slowTarget struct {
	transactionalTarget
	pace *pace
}

func (w slowTarget) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	tx, err := w.transactionalTarget.Begin(ctx, lanes)
	return slowTx{tx, w.pace}, err
}

type slowTx struct {
	sdk.Tx
	pace *pace
}

func (t slowTx) Apply(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	if err := t.pace.wait(ctx); err != nil {
		return nil, err
	}
	return t.Tx.Apply(ctx, c)
}

// Lanes that are seconds apart never go back and lose nothing. DATALINK_SLOW_SEEDS
// sets how many histories.
func TestSlowTargets(t *testing.T) {
	seeds := uint64(60)
	if n, err := strconv.ParseUint(os.Getenv("DATALINK_SLOW_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for _, tt := range []struct {
		name  string
		lanes []int32
		sc    conformance.Scenario
	}{
		{"two lanes", []int32{2}, conformance.Scenario{Splits: true}},
		{"four lanes", []int32{4}, conformance.Scenario{Splits: true, Faults: true}},
		{"four lanes, failover", []int32{4}, conformance.Scenario{Splits: true, Reorder: true}},
		{"four lanes, refusals", []int32{4}, conformance.Scenario{Splits: true, Refusals: true, Faults: true}},
		{"lanes change", []int32{1, 2, 4}, conformance.Scenario{Splits: true, Reorder: true, Refusals: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range seeds {
				sub := transactional(tt.lanes...)
				make := sub.New
				sub.New = func(ctx context.Context) (conformance.Store, error) {
					s, err := make(ctx)
					return slowStore{s.(databaseStore), &pace{r: rand.New(rand.NewPCG(seed, 1))}}, err
				}
				sub.Engine.Clock = fast{time.Now()}
				d := pcg(seed)
				if err := conformance.Random(context.Background(), sub, &d, tt.sc); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
}
