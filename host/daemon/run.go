package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/host/task"
	"github.com/datalink-go/datalink/registry"
	"github.com/datalink-go/datalink/sdk"
)

// Options of one run.
type Options struct {
	TakeOver bool
	WaitHeld time.Duration     // for another execution to end; 0 = without end
	Once     bool              // a retryable start-up fault ends the run
	Pipeline task.RunPipeline  // nil = move changes
	OnState  func(task.State)  // must not block
	Observer pipeline.Observer // nil = nobody
}

// run is one execution of a task.
type run struct {
	task   *config.Task
	def    coordination.Definition
	runner *task.Runner
	meter  *Meter
	done   chan struct{}

	mu      sync.Mutex
	state   task.State
	failure error // of the start, with its type
	live    *connectors
	levels  map[string]string
	outcome task.Outcome

	// Of the report; one goroutine asks.
	paceRead int64
	paceAt   time.Time
	paceRate float64
}

// Result is how a run ended.
type Result struct {
	Task      *config.Task
	Outcome   task.Outcome
	Reading   Reading
	Levels    map[string]string // of writers
	Positions map[string]string // of writers, as printed
	Err       error             // nil where it ended as it was meant to
}

// launcher is what a task.Runner starts connectors with.
type launcher struct {
	s *starter
	r *run
}

// Start implements task.Launcher.
func (l launcher) Start(ctx context.Context, ex sdk.Execution) (task.Connectors, error) {
	ex.Mapping = mappingDigest(l.r.task)
	c, err := l.s.start(ctx, l.r.task, ex, false)
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.r.failure = err
	if err != nil {
		return nil, startFault(err)
	}
	l.r.live = c
	for name, level := range c.levels {
		l.r.levels[name] = string(level)
	}
	return c, nil
}

// startFault says whether starting again makes sense.
func startFault(err error) *sdk.Fault {
	f := *sdk.AsFault(err)
	var problems config.Problems
	var check *CheckError
	switch {
	case errors.As(err, &problems):
		f.Code, f.Retryable = sdk.CodeInvalidConfig, false
	case errors.As(err, &check), errors.Is(err, supervisor.ErrDigest), errors.Is(err, supervisor.ErrProtocol),
		errors.Is(err, supervisor.ErrManifest), errors.Is(err, supervisor.ErrLevel), errors.Is(err, registry.ErrDigest):
		f.Code, f.Retryable = sdk.CodeRefused, false
	}
	return &f
}

// mappingDigest changes when what a target gets of the source changes: with it
// lanes first drain under the old mapping.
func mappingDigest(t *config.Task) string {
	type step struct {
		Plugin string
		Tables config.Patterns
		Config json.RawMessage
	}
	var all struct {
		Transforms []step
		Writers    map[string]any
	}
	for _, tr := range t.Transforms {
		all.Transforms = append(all.Transforms, step{tr.Plugin.Name, tr.Tables, tr.Config.JSON()})
	}
	all.Writers = map[string]any{}
	for _, w := range t.Writers {
		all.Writers[w.Name] = struct {
			Mappings any
			Naming   any
		}{w.Mappings, t.Naming(true)}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return "" // of texts and numbers: never
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// start begins a run. The returned run is among those that Close stops.
func (n *Node) start(t *config.Task, def coordination.Definition, o Options) (*run, error) {
	r := &run{task: t, def: def, done: make(chan struct{}), levels: map[string]string{}}
	observers := []pipeline.Observer{counted{n.metrics, t.Name}}
	if o.Observer != nil {
		observers = append(observers, o.Observer)
	}
	r.meter = NewMeter(observers...)
	s := n.starter()
	session := n.current()
	s.shadow = newShadow(n.store, session, s.log, r.meter)
	limits := task.Limits{}
	if o.Once {
		limits.Tries = 3
	}
	var err error
	r.runner, err = task.NewRunner(task.Config{
		Task: t.Name, Version: def.Version, TakeOver: o.TakeOver, Store: n.store, Session: session,
		Launcher: launcher{s, r}, Audit: n.auditor, Run: o.Pipeline, Grace: n.cfg.Grace, WaitHeld: o.WaitHeld, MarkEvery: n.markEvery(),
		Observer: s.shadow, Clock: wallClock(), Log: n.log, Limits: limits,
		OnState: func(st task.State) {
			r.mu.Lock()
			r.state = st
			r.mu.Unlock()
			n.metrics.show(t.Name, st.Phase)
			if st.Phase == task.Running {
				n.beginVerification(r) // that was cut short, if there is one
			}
			if o.OnState != nil {
				o.OnState(st)
			}
		},
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil:
	case n.closed:
		err = errors.New("the node is closed")
	case n.runs[t.Name] != nil:
		err = fmt.Errorf("task %s runs already", t.Name)
	}
	if err != nil {
		s.shadow.close()
		return nil, err
	}
	n.runs[t.Name] = r
	go func() {
		out := r.runner.Run(context.Background())
		s.shadow.close()
		n.mu.Lock()
		delete(n.runs, t.Name)
		n.mu.Unlock()
		r.mu.Lock()
		r.outcome, r.state = out, out.State
		r.mu.Unlock()
		close(r.done)
	}()
	return r, nil
}

func (r *run) stop(reason string) { r.runner.Stop(task.Ended, reason) }

// result is valid after done.
func (r *run) result() Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := Result{Task: r.task, Outcome: r.outcome, Reading: r.meter.Reading(), Levels: r.levels}
	switch r.outcome.Phase {
	case task.Ended, task.Paused:
	case task.Fenced:
		res.Err = api.Errorf(api.Fenced, "task %s: %s", r.task.Name, r.outcome.Reason)
	default:
		res.Err = r.classify()
	}
	return res
}

// classify gives a failure the kind from which its exit code follows.
func (r *run) classify() error {
	var problems config.Problems
	var check *CheckError
	fault := r.outcome.Fault
	cause := error(fault)
	if r.failure != nil {
		cause = r.failure
	} else if fault == nil {
		cause = errors.New(r.outcome.Reason)
	}
	switch {
	case errors.As(r.failure, &problems):
		return api.As(api.Usage, problems)
	case errors.As(r.failure, &check):
		return api.As(api.CheckFailed, check)
	case r.failure != nil && !startFault(r.failure).Retryable && startFault(r.failure).Code == sdk.CodeRefused:
		return api.As(api.CheckFailed, r.failure)
	case fault != nil && (fault.Code == sdk.CodeFenced):
		return api.Errorf(api.Fenced, "task %s: %w", r.task.Name, cause)
	case fault != nil && fault.Code == sdk.CodeForeignClaim:
		return api.Errorf(api.CheckFailed, "task %s: %w", r.task.Name, cause)
	}
	return api.Errorf(api.Failed, "task %s: %w", r.task.Name, cause)
}
