package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Version names the kit in reports.
const Version = "datalink-conformance/1"

// Seeds is how many random scenarios of each kind Check runs.
const Seeds = 40

// TB is what Run needs of *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Run holds the subject to all cases of its level and reports what fails.
func Run(t TB, sub *Subject) {
	t.Helper()
	results, err := Check(context.Background(), sub)
	if err != nil {
		t.Errorf("%s: %v", sub.Name, err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %s: %v", sub.Name, r.Case, r.Err)
		}
	}
}

// Result is what became of one case.
type Result struct {
	Case string
	Err  error
}

// Report turns results into what a manifest says.
func Report(results []Result) *manifest.Report {
	r := &manifest.Report{Kit: Version}
	for _, x := range results {
		if x.Err == nil {
			r.Passed = append(r.Passed, x.Case)
		}
	}
	return r
}

// Level returns the level that a target's code implements.
func Level(t sdk.Target) manifest.Level {
	switch t.(type) {
	case sdk.TransactionalWriter:
		return manifest.LevelTransactional
	case sdk.VersionedWriter:
		return manifest.LevelVersioned
	case sdk.IdempotentWriter:
		return manifest.LevelIdempotent
	}
	return manifest.LevelNone
}

// Check runs all cases of the subject's level. The error is that of a subject
// which cannot be opened.
func Check(ctx context.Context, sub *Subject) ([]Result, error) {
	level, err := levelOf(ctx, sub)
	if err != nil {
		return nil, err
	}
	if level == manifest.LevelNone {
		return nil, fmt.Errorf("the writer implements none of the writer interfaces")
	}
	var out []Result
	for _, c := range Cases() {
		if !slices.Contains(c.Levels, level) {
			continue
		}
		out = append(out, Result{c.Name, once(ctx, sub, c)})
	}
	scenarios := map[string]Scenario{
		"random transactions":                            {Rounds: -1},
		"random transactions and crashes":                {Splits: true, Faults: true},
		"random transactions, crashes and another order": {Splits: true, Reorder: true},
	}
	for _, name := range []string{"random transactions", "random transactions and crashes", "random transactions, crashes and another order"} {
		sc := scenarios[name]
		if sc.Reorder && level != manifest.LevelTransactional {
			continue
		}
		var err error
		for seed := range uint64(Seeds) {
			if err = Random(ctx, sub, newRandom(seed), sc); err != nil {
				err = fmt.Errorf("seed %d: %w", seed, err)
				break
			}
		}
		out = append(out, Result{name, err})
	}
	return out, ctx.Err()
}

func levelOf(ctx context.Context, sub *Subject) (manifest.Level, error) {
	store, err := sub.New(ctx)
	if err != nil {
		return "", fmt.Errorf("new store: %w", err)
	}
	defer store.Close(ctx)
	t, err := store.Open(ctx)
	if err != nil {
		return "", fmt.Errorf("open: %w", err)
	}
	return Level(t), t.Close(ctx)
}

func once(ctx context.Context, sub *Subject, c Case) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	store, err := sub.New(ctx)
	if err != nil {
		return fmt.Errorf("new store: %w", err)
	}
	defer store.Close(context.WithoutCancel(ctx))
	return c.Run(ctx, sub, store)
}
