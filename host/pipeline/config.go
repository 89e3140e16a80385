package pipeline

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/datalink-go/datalink/sdk"
)

// Policy says what happens to a record that cannot be written.
type Policy uint8

// The policies of onError.
const (
	StopOnError Policy = iota
	DeadLetterOnError
)

// Config is one run of a pipeline. Zero values of Window and Backoff mean the
// defaults.
type Config struct {
	Execution sdk.Execution
	Reader    ReaderConfig
	Stages    []Stage // transforms, in order, before the writers
	Writers   []WriterConfig
	Progress  Progress
	Window    Window
	Backoff   Backoff
	Observer  Observer // nil = nobody looks
	Log       *slog.Logger
	// Stop ends reading when it is closed; what is in flight is drained. The
	// context, in contrast, ends everything at once.
	Stop <-chan struct{}
	// Deadline gives the moment (CLOCK_BOOTTIME, microseconds) after which
	// idempotent writers must not write; nil = none.
	Deadline func() int64
	// Beside gives others access to the run; nil = nobody has it.
	Beside *Beside
	// NoGuard switches the dead-letter guard off, for the test that shows what
	// it is good for.
	NoGuard bool
	// NoSkip hands over what the target holds already, likewise.
	NoSkip bool
}

// ReaderConfig is the source of a run.
type ReaderConfig struct {
	Source Source
	// Reopen replaces a source that died. It returns when the new one is ready.
	Reopen func(ctx context.Context) (Source, error)
	// Prompt says that the source waits for what is durable: the reader is told at
	// once, not once a second.
	Prompt bool
}

// WriterConfig is one writer of a run.
type WriterConfig struct {
	Name    string
	Sink    Sink
	Claimed *sdk.Claimed // of the claim that was made before the run; nil = claim first
	// Reopen replaces a sink that died.
	Reopen func(ctx context.Context) (Sink, error)
	Stages []Stage // mapping and filter of this writer
	// Stores says that the target stores positions, state and dead letters
	// itself; otherwise Progress does.
	Stores    bool
	Versioned bool // wants versions and a ceiling
	Leased    bool // idempotent: wants the deadline with each block
	OnError   Policy
}

// Window bounds what was read and is not yet acknowledged by all writers.
type Window struct {
	Records int // 0 = 65,536
	Bytes   int // 0 = 16 MiB
}

// Backoff spaces attempts after retryable faults: the n-th wait is between half
// and all of Min·2ⁿ, at most Max.
type Backoff struct {
	Min time.Duration // 0 = 100 ms
	Max time.Duration // 0 = 30 s
	// Detach is how long a writer may be down while the window is full of blocks
	// only it has not acknowledged; 0 = 10 s.
	Detach time.Duration
	// Attempts bounds the tries without progress; 0 = 20.
	Attempts int
}

func (b Backoff) wait(n int) time.Duration {
	d := b.Min << min(n, 20)
	if d <= 0 || d > b.Max {
		d = b.Max
	}
	return d/2 + rand.N(d/2+1)
}

func (c Config) withDefaults() Config {
	if c.Window.Records <= 0 {
		c.Window.Records = 64 << 10
	}
	if c.Window.Bytes <= 0 {
		c.Window.Bytes = 16 << 20
	}
	if c.Backoff.Min <= 0 {
		c.Backoff.Min = 100 * time.Millisecond
	}
	if c.Backoff.Max <= 0 {
		c.Backoff.Max = 30 * time.Second
	}
	if c.Backoff.Detach <= 0 {
		c.Backoff.Detach = 10 * time.Second
	}
	if c.Backoff.Attempts <= 0 {
		c.Backoff.Attempts = 20
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Observer hears what a run does. Calls come from several goroutines and must
// not block.
type Observer interface {
	// Read: a block came from the reader. Committed is the source commit time
	// of its last transaction in microseconds, 0 = unknown.
	Read(records, bytes int, last sdk.Position, committed int64)
	// Filtered: records that stages dropped, those of a writer or, with writer "",
	// those before all writers.
	Filtered(writer string, records int)
	// Acked: a block is durable at a writer.
	Acked(writer string, counts []Count, committed int64, last sdk.Position)
	// Skipped: changes that a writer held already.
	Skipped(writer string, records int)
	// DeadLettered: a record was set aside.
	DeadLettered(writer string, d sdk.DeadLetter)
	// Restarted: a connector was replaced, or its stream begun anew.
	Restarted(name string, err error)
}

// Count is how many changes of a kind one table got.
type Count struct {
	Table                      string
	Inserted, Updated, Deleted int
}

type nobody struct{}

func (nobody) Read(int, int, sdk.Position, int64)         {}
func (nobody) Filtered(string, int)                       {}
func (nobody) Acked(string, []Count, int64, sdk.Position) {}
func (nobody) Skipped(string, int)                        {}
func (nobody) DeadLettered(string, sdk.DeadLetter)        {}
func (nobody) Restarted(string, error)                    {}
