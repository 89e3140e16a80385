package target

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Writer is what a dialect provides.
type Writer interface {
	sdk.TransactionalWriter
	sdk.Discoverer
	sdk.Releaser
	sdk.TargetScanner
	sdk.Laned
}

// Rehearser is implemented by dialects that can say what they would do.
type Rehearser interface {
	// Look returns the progress that the target holds for the execution and takes
	// nothing.
	Look(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error)
	// Rehearse returns the statements that Prepare would run, and runs none.
	Rehearse(ctx context.Context, s *batch.Schema) ([]string, sdk.Constraints, error)
}

// GuardConfig says what a Guard does. The zero value only counts.
type GuardConfig struct {
	SkipKeys       []string // TABLE:KEY, see KeyText
	RowsPerSecond  int64    // 0 = no limit
	BytesPerSecond int64    // of row images; 0 = no limit
	DryRun         bool
	Stats          *Stats        // nil = one of its own
	Every          time.Duration // between two log lines of the counters; 0 = one minute
	Log            *slog.Logger  // nil = none
	Clock          Clock         // nil = the system's
}

// Guard stands in front of a dialect's writer.
type Guard struct {
	Writer
	cfg         GuardConfig
	skip        skip
	rows, bytes *rate

	mu   sync.Mutex
	last time.Time // of the log line
}

var (
	_ Writer = (*Guard)(nil)
	_ sdk.Tx = (*guardTx)(nil)
	_ sdk.Tx = (*dryTx)(nil)
)

// NewGuard wraps w.
func NewGuard(w Writer, cfg GuardConfig) (*Guard, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = systemClock{}
	}
	if cfg.Stats == nil {
		cfg.Stats = &Stats{}
	}
	if cfg.Every <= 0 {
		cfg.Every = time.Minute
	}
	s, err := parseSkip(cfg.SkipKeys)
	if err != nil {
		return nil, err
	}
	if _, ok := w.(Rehearser); cfg.DryRun && !ok {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "dryRun: this kind of target cannot rehearse").Suggest("leave dryRun out")
	}
	return &Guard{
		Writer: w, cfg: cfg, skip: s, rows: newRate(cfg.RowsPerSecond, cfg.Clock), bytes: newRate(cfg.BytesPerSecond, cfg.Clock), last: cfg.Clock.Now(),
	}, nil
}

// Stats returns the counters.
func (g *Guard) Stats() *Stats { return g.cfg.Stats }

// Claim takes the target, or looks at it in a dry run.
func (g *Guard) Claim(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	if g.cfg.DryRun {
		g.cfg.Log.Warn("dry run: nothing is written and no progress is stored", "task", ex.Task, "writer", ex.Writer)
		return g.Writer.(Rehearser).Look(ctx, ex)
	}
	return g.Writer.Claim(ctx, ex)
}

// Prepare makes the table ready, or logs what that takes in a dry run.
func (g *Guard) Prepare(ctx context.Context, s *batch.Schema) (sdk.Constraints, error) {
	if !g.cfg.DryRun {
		return g.Writer.Prepare(ctx, s)
	}
	texts, cons, err := g.Writer.(Rehearser).Rehearse(ctx, s)
	for _, t := range texts {
		g.cfg.Log.Info("dry run: would run", "table", s.Name(), "statement", t)
	}
	return cons, err
}

// Begin waits until the rate allows another transaction.
func (g *Guard) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	if err := g.rows.wait(ctx); err != nil {
		return nil, err
	}
	if err := g.bytes.wait(ctx); err != nil {
		return nil, err
	}
	if g.cfg.DryRun {
		return &dryTx{g: g}, nil
	}
	began := g.cfg.Clock.Now()
	tx, err := g.Writer.Begin(ctx, lanes)
	if err != nil {
		g.failed(err)
		return nil, err
	}
	return &guardTx{Tx: tx, g: g, began: began}, nil
}

func (g *Guard) failed(err error) {
	if f := sdk.AsFault(err); f.Retryable {
		g.cfg.Stats.Retries.Add(1)
	}
}

// Close logs the counters a last time.
func (g *Guard) Close(ctx context.Context) error {
	if g.cfg.Stats.Transactions.Load() > 0 {
		g.cfg.Log.Info("writer statistics", "stats", g.cfg.Stats)
	}
	return g.Writer.Close(ctx)
}

// report logs the counters where it is time.
func (g *Guard) report() {
	now := g.cfg.Clock.Now()
	g.mu.Lock()
	due := now.Sub(g.last) >= g.cfg.Every
	if due {
		g.last = now
	}
	g.mu.Unlock()
	if due {
		g.cfg.Log.Info("writer statistics", "stats", g.cfg.Stats)
	}
}

type guardTx struct {
	sdk.Tx
	g           *Guard
	began       time.Time
	rows, bytes int64
}

func (t *guardTx) Fence(ctx context.Context, next []sdk.Next) error {
	err := t.Tx.Fence(ctx, next)
	if err != nil {
		t.g.failed(err)
	}
	return err
}

func (t *guardTx) Apply(ctx context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	left, index := t.g.skip.without(ch)
	if n := ch.Len() - left.Len(); n > 0 {
		t.g.cfg.Stats.Skipped.Add(uint64(n))
		t.g.cfg.Log.Warn("changes were left out by skipKeys", "changes", n)
	}
	t.rows += int64(left.Len())
	for _, seg := range left.Segments {
		for i := range seg {
			t.bytes += int64(len(seg[i].Before.Data()) + len(seg[i].After.Data()))
		}
	}
	if left.Len() == 0 {
		return nil, nil
	}
	bad, err := t.Tx.Apply(ctx, left)
	if err != nil {
		t.g.failed(err)
	}
	if index != nil {
		for i := range bad {
			bad[i].Index = index[bad[i].Index]
		}
	}
	return bad, err
}

func (t *guardTx) Commit(ctx context.Context) error {
	if err := t.Tx.Commit(ctx); err != nil {
		t.g.failed(err)
		return err
	}
	g, s := t.g, t.g.cfg.Stats
	g.rows.spend(t.rows)
	g.bytes.spend(t.bytes)
	s.Transactions.Add(1)
	s.Rows.Add(uint64(t.rows))
	s.Bytes.Add(uint64(t.bytes))
	s.Sizes.Add(uint64(t.rows))
	s.Latency.Add(uint64(g.cfg.Clock.Now().Sub(t.began).Microseconds()))
	g.report()
	return nil
}

// dryTx writes nothing and logs what would be written.
type dryTx struct{ g *Guard }

func (t *dryTx) Fence(context.Context, []sdk.Next) error { return nil }
func (t *dryTx) Commit(context.Context) error            { return nil }
func (t *dryTx) Rollback(context.Context) error          { return nil }

func (t *dryTx) Apply(_ context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	left, _ := t.g.skip.without(ch)
	for _, seg := range left.Segments {
		for i := range seg {
			text, err := describe(&seg[i])
			if err != nil {
				return nil, err
			}
			t.g.cfg.Log.Info("dry run: would write", "change", text)
		}
	}
	t.g.rows.spend(int64(left.Len()))
	return nil, nil
}

// describe writes a change with its values.
func describe(c *sdk.Change) (string, error) {
	if c.Op == sdk.Alter {
		if c.DDL == nil {
			return "alter", nil
		}
		return "alter: " + c.DDL.Statement, nil
	}
	b := []byte(Row(c))
	if c.After.IsZero() {
		return string(b), nil
	}
	vals, err := c.After.Values(nil)
	if err != nil {
		return "", err
	}
	for i := range vals {
		col := &c.After.Schema().Columns[i]
		b = append(append(append(b, ' '), col.Name...), '=')
		b = appendValue(b, col, &vals[i])
	}
	return string(b), nil
}
