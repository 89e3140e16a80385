package conformance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/datalink-go/datalink/sdk/conformance"
	"github.com/datalink-go/datalink/sdk/delivery"
)

func TestReferenceWritersPassTheKit(t *testing.T) {
	for _, sub := range []*conformance.Subject{transactional(1), transactional(4), transactional(1, 2, 4), versioned(), idempotent()} {
		conformance.Run(t, sub)
	}
}

// pcg is a Drawer from a seed.
type pcg uint64

func (p *pcg) Int(lo, hi int) int {
	*p = *p*6364136223846793005 + 1442695040888963407
	return lo + int(uint64(*p)>>33)%(hi-lo+1)
}

// TestEachGuaranteeIsNeeded switches one guarantee off after the other and wants
// the property tests to notice.
func TestEachGuaranteeIsNeeded(t *testing.T) {
	tests := []struct {
		name     string
		switches delivery.Switches
		lanes    int32
		sc       conformance.Scenario
	}{
		{"", delivery.Switches{}, 4, conformance.Scenario{Splits: true}},
		{"skip", delivery.Switches{SkipOff: true}, 1, conformance.Scenario{Splits: true}},
		{"ties", delivery.Switches{TiesOff: true}, 1, conformance.Scenario{Rounds: -1}},
		{"lane wait", delivery.Switches{LaneWaitOff: true}, 4, conformance.Scenario{Rounds: -1}},
		{"no merge across a wait", delivery.Switches{MergeAcrossWait: true}, 4, conformance.Scenario{Rounds: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var red error
			for seed := pcg(1); seed < 200 && red == nil; seed++ {
				synctest.Test(t, func(t *testing.T) {
					d := seed
					sub := transactional(tt.lanes)
					sub.Engine.Switches = tt.switches
					red = conformance.Random(context.Background(), sub, &d, tt.sc)
				})
			}
			if tt.name == "" {
				if red != nil {
					t.Fatal(red)
				}
				return
			}
			if red == nil {
				t.Fatal("nothing goes wrong without it")
			}
			t.Log(strings.ReplaceAll(red.Error(), "\n", " "))
		})
	}
}

func TestKitNoticesAMissingFence(t *testing.T) {
	sub := transactional(1)
	make := sub.New
	sub.New = func(ctx context.Context) (conformance.Store, error) {
		s, err := make(ctx)
		s.(databaseStore).db.FenceOff = true
		return s, err
	}
	results, err := conformance.Check(context.Background(), sub)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	for _, r := range results {
		failed[r.Case] = r.Err != nil
	}
	for _, name := range []string{
		"a late writer of a lower epoch writes nothing", "a plugin that was restarted fences its predecessor",
		"a target that went back is noticed",
	} {
		if !failed[name] {
			t.Errorf("case %q passes without a fence", name)
		}
	}
}

func TestKitNeedsAStore(t *testing.T) {
	sub := idempotent()
	sub.New = func(context.Context) (conformance.Store, error) { return nil, errors.New("no store") }
	if _, err := conformance.Check(context.Background(), sub); err == nil {
		t.Error("a subject without a store passes")
	}
}
