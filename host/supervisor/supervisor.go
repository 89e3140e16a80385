package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Errors of Supervisor.Ready.
var (
	ErrQuarantined = errors.New("plugin is in quarantine")
	ErrClosed      = errors.New("supervisor is closed")
)

// Instance is a running process. One that also has Charged() bool says by it
// whether it died with blocks in hand, see the event Charged.
type Instance interface {
	// Exited is closed when the process has ended.
	Exited() <-chan struct{}
	// How says how it ended, after Exited.
	How() string
	// Close ends it and returns when it has ended.
	Close(ctx context.Context) error
}

// Options of a Supervisor.
type Options struct {
	Policy   Policy
	Log      *slog.Logger   // nil = none
	Random   func() float64 // in [0, 1); nil = math/rand
	OnChange func(State)    // called in order with each new state; must not block; nil = none
}

// Supervisor keeps one instance of a plugin running while it is wanted: it
// carries out the effects of Policy.Step. It is safe for concurrent use.
type Supervisor[T Instance] struct {
	start func(context.Context) (T, error)
	opts  Options
	begun time.Time

	events chan func() // run by the loop
	quit   chan struct{}
	done   chan struct{}
	run    *run // owned by the loop

	mu      sync.Mutex
	state   State
	current T
	has     bool
	lastErr error
	changed chan struct{} // closed at the next Telling
}

// New returns a Supervisor that makes instances by start. Start must keep to its
// context; its error says by Hopeless whether another try makes sense.
func New[T Instance](start func(context.Context) (T, error), opts Options) *Supervisor[T] {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Random == nil {
		opts.Random = rand.Float64
	}
	s := &Supervisor[T]{
		start: start, opts: opts, begun: time.Now(), changed: make(chan struct{}),
		events: make(chan func()), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go s.loop()
	return s
}

// State returns the present state.
func (s *Supervisor[T]) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Ready returns the running instance and starts one where there is none. It
// waits through back-offs; a quarantine ends it with ErrQuarantined and the cause.
func (s *Supervisor[T]) Ready(ctx context.Context) (T, error) {
	var none T
	if !s.post(func() { s.step(Want, "") }) {
		return none, ErrClosed
	}
	for {
		s.mu.Lock()
		state, current, has, changed, cause := s.state, s.current, s.has, s.changed, s.lastErr
		s.mu.Unlock()
		switch {
		case state.Phase == Ready && has:
			select {
			case <-current.Exited(): // its death is on the way here
			default:
				return current, nil
			}
		case state.Phase == Quarantined:
			return none, fmt.Errorf("%w: %w", ErrQuarantined, cause)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if cause != nil {
				return none, fmt.Errorf("plugin is %s: %w: %w", state.Phase, ctx.Err(), cause)
			}
			return none, fmt.Errorf("plugin is %s: %w", state.Phase, ctx.Err())
		case <-s.done:
			return none, ErrClosed
		}
	}
}

// Release says that the plugin is not wanted any more; it is drained.
func (s *Supervisor[T]) Release() { s.post(func() { s.step(Unwant, "released") }) }

// Reset lifts a quarantine.
func (s *Supervisor[T]) Reset() { s.post(func() { s.step(Reset, "reset by an operator") }) }

// Close drains the plugin and returns when nothing of it runs any more. That is
// bounded by the grace period of the instance.
func (s *Supervisor[T]) Close() {
	s.Release()
	for {
		s.mu.Lock()
		alive, changed := s.state.Alive, s.changed
		s.mu.Unlock()
		if !alive {
			break
		}
		select {
		case <-changed:
		case <-s.done:
			return
		}
	}
	select {
	case s.events <- func() { close(s.quit) }:
	case <-s.done:
	}
	<-s.done
}

func (s *Supervisor[T]) post(f func()) bool {
	select {
	case s.events <- f:
		return true
	case <-s.done:
		return false
	}
}

// loop is the one goroutine that changes the state.
func (s *Supervisor[T]) loop() {
	defer close(s.done)
	for {
		select {
		case f := <-s.events:
			f()
		case <-s.quit:
			return
		}
	}
}

// step runs in the loop.
func (s *Supervisor[T]) step(kind EventKind, reason string) {
	e := Event{Kind: kind, At: time.Since(s.begun), Random: s.opts.Random(), Reason: reason}
	s.mu.Lock()
	old := s.state
	next, effects := s.opts.Policy.Step(old, e)
	s.state = next
	if !next.Alive {
		var none T
		s.current, s.has = none, false
	}
	s.mu.Unlock()
	if old.Phase != next.Phase {
		s.opts.Log.Info("plugin state", "from", old.Phase.String(), "to", next.Phase.String(), "reason", next.Reason, "attempt", next.Attempt)
		if s.opts.OnChange != nil {
			s.opts.OnChange(next)
		}
	}
	for _, f := range effects {
		s.carryOut(f)
	}
}
