package task

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/audit"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
)

// Config of a Runner. Task, Store, Session and Launcher are required.
type Config struct {
	Task     string
	Version  uint64 // of the definition that Launcher was made for; 0 = any
	TakeOver bool   // claim targets of another store or task uid
	Store    Store
	Session  coordination.Session
	Launcher Launcher
	Audit    Auditor     // nil = nothing is recorded
	Run      RunPipeline // nil = pipeline.Run

	Grace     time.Duration // from a stop to the kill; 0 = 30 s
	WaitHeld  time.Duration // for a task that another has; 0 = without end
	MarkEvery time.Duration // how often the journal's mark moves; 0 = 5 s
	Margin    time.Duration // of the lease, see Guard; 0 = a third of its time-out
	Backoff   Backoff
	Limits    Limits

	Observer pipeline.Observer // nil = nobody
	OnState  func(State)       // called at each change, in order; must not block
	Log      *slog.Logger
	Clock    coordination.Clock
	NewID    func() string // of executions; nil = UUIDv7
}

// Backoff spaces tries: the n-th wait is between half and all of Min·2ⁿ⁻¹, at
// most Max.
type Backoff struct {
	Min time.Duration // 0 = 500 ms
	Max time.Duration // 0 = 1 min
	// Rand gives the jitter, in [0, 1); nil = random.
	Rand func() float64
}

func (b Backoff) wait(try int) time.Duration {
	lo, hi, f := b.Min, b.Max, b.Rand
	if lo <= 0 {
		lo = 500 * time.Millisecond
	}
	if hi <= 0 {
		hi = time.Minute
	}
	if f == nil {
		f = rand.Float64
	}
	d := lo << min(max(try-1, 0), 20)
	if d <= 0 || d > hi {
		d = hi
	}
	return d/2 + time.Duration(f()*float64(d/2))
}

// Outcome is how a run ended.
type Outcome struct {
	State       // Phase is final
	ExecutionID string
	Status      coordination.Status // as it was taken; zero if it never was
	Pipeline    pipeline.Result     // of the last round
}

// Runner runs one execution of a task.
type Runner struct {
	cfg    Config
	id     string
	events chan Event
	work   chan Effect
	done   chan struct{} // closed when the machine has finished
	reload chan struct{} // the phase changed: show it
	wg     sync.WaitGroup

	mu      sync.Mutex
	status  coordination.Status
	phase   Phase
	reason  string
	replace string        // executionId of the dead node
	conns   Connectors    // while they live
	aborted bool          // slow effects before the next close are in vain
	killed  bool          // nothing is closed in good order any more
	cancel  func()        // of the slow effect at work
	stop    chan struct{} // ends reading
	levels  []audit.Writer
	claimed map[string]*sdk.Claimed
	last    *sdk.Fault // fenced, for the audit
	result  pipeline.Result
	unsure  bool // predecessors are left to settle
	idem    bool // a writer is only idempotent

	unjudged bool // predecessors could not be judged at all

	// owner serializes conditional writes with changes of what they depend on.
	owner     sync.Mutex
	released  bool
	lastMarks []coordination.Mark // as they were written last

	tally *tally
	store *progress
	timer *time.Timer // of the back-off; the loop's own
	grace *time.Timer
}

// NewRunner makes a Runner for one run.
func NewRunner(cfg Config) (*Runner, error) {
	if cfg.Task == "" || cfg.Store == nil || cfg.Session == nil || cfg.Launcher == nil {
		return nil, errors.New("task runner: task, store, session and launcher are required")
	}
	if cfg.Run == nil {
		cfg.Run = pipeline.Run
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 30 * time.Second
	}
	if cfg.MarkEvery <= 0 {
		cfg.MarkEvery = 5 * time.Second
	}
	if cfg.Clock == nil {
		cfg.Clock = coordination.System{}
	}
	if cfg.Margin <= 0 {
		cfg.Margin = cfg.Session.Lease().Timeout / 3
	}
	if cfg.Observer == nil {
		cfg.Observer = silent{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Log = cfg.Log.With("task", cfg.Task)
	r := &Runner{
		cfg: cfg, events: make(chan Event, 16), work: make(chan Effect, 64),
		done: make(chan struct{}), reload: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if cfg.NewID != nil {
		r.id = cfg.NewID()
	} else {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		r.id = id.String()
	}
	r.tally = newTally(cfg.Observer, cfg.Clock.Now, r.progressed)
	r.store = &progress{store: cfg.Store, session: cfg.Session, status: r.current}
	return r, nil
}

// ExecutionID is the id that the run has, taken or not.
func (r *Runner) ExecutionID() string { return r.id }

// Stop asks for a drained end; want is Ended or Paused. It returns at once.
func (r *Runner) Stop(want Phase, reason string) {
	r.emit(Event{Kind: EvStop, Want: want, Text: reason})
}

// Kill ends the run without waiting for anything to be written.
func (r *Runner) Kill(reason string) {
	r.emit(Event{Kind: EvStop, Want: Ended, Text: reason})
	r.emit(Event{Kind: EvGrace})
}

// Run takes the task, runs it and gives it up. It returns when nothing of it is
// left on this worker. When ctx ends, it is killed.
func (r *Runner) Run(ctx context.Context) Outcome {
	base := context.WithoutCancel(ctx)
	r.wg.Go(func() { r.worker(base) })
	r.wg.Go(func() { r.beside(base) })
	r.wg.Go(func() {
		select {
		case <-ctx.Done():
			r.Kill("interrupted: " + context.Cause(ctx).Error())
		case <-r.done:
		}
	})
	r.wg.Go(func() {
		select {
		case <-r.cfg.Session.Lost():
			r.emit(Event{Kind: EvLost})
		case <-r.done:
		}
	})
	s := State{Limits: r.cfg.Limits}
	s = r.step(s, Event{Kind: EvStart})
	for !s.Phase.Final() {
		s = r.step(s, <-r.events)
	}
	close(r.done)
	r.mu.Lock()
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	for _, t := range []*time.Timer{r.timer, r.grace} {
		if t != nil {
			t.Stop()
		}
	}
	close(r.work)
	r.wg.Wait()
	return Outcome{State: s, ExecutionID: r.id, Status: r.current(), Pipeline: r.result}
}

func (r *Runner) emit(e Event) {
	select {
	case r.events <- e:
	case <-r.done:
	}
}

func (r *Runner) current() coordination.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// progressed must not block: it is called for each acknowledged block.
func (r *Runner) progressed() {
	select {
	case r.events <- Event{Kind: EvProgress}:
	default: // the queue is full of other news; the next block tells
	}
}

// step advances the machine and starts the effects.
func (r *Runner) step(s State, e Event) State {
	if e.Kind == EvFault && e.Fault != nil && e.Fault.Code == sdk.CodeFenced {
		r.mu.Lock()
		r.last = e.Fault
		r.mu.Unlock()
	}
	before := s
	s, fx := Step(s, e)
	r.mu.Lock()
	r.phase, r.reason = s.Phase, s.Reason
	r.mu.Unlock()
	if s.Phase != before.Phase {
		r.cfg.Log.Info("task changes phase", "phase", string(s.Phase), "from", string(before.Phase), "execution", r.id, "reason", s.Reason)
	}
	if r.cfg.OnState != nil && (s.Phase != before.Phase || s.Reason != before.Reason || s.Epoch != before.Epoch) {
		r.cfg.OnState(s)
	}
	for _, f := range fx {
		r.do(s, f)
	}
	return s
}

type silent struct{}

func (silent) Read(int, int, sdk.Position, int64)                  {}
func (silent) Filtered(string, int)                                {}
func (silent) Acked(string, []pipeline.Count, int64, sdk.Position) {}
func (silent) Skipped(string, int)                                 {}
func (silent) DeadLettered(string, sdk.DeadLetter)                 {}
func (silent) Restarted(string, error)                             {}
