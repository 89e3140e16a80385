package daemon

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
)

// shadowed keeps a copy of a target's dead letters in the store, so that they can
// be listed while nobody has claimed the target. The target's own are the
// authority: each claim makes the copy equal to them.
type shadowed struct {
	pipeline.Sink
	*shadow
}

// shadow is the copies of one task's run. It hears of new dead letters as an
// observer of the pipeline.
type shadow struct {
	pipeline.Observer // next
	store             coordination.Definitions
	session           coordination.Session
	log               *slog.Logger

	mu    sync.Mutex
	owner coordination.Owner
	mine  map[string]bool // writers whose letters are copied
	queue chan aside
	done  chan struct{}
}

type aside struct {
	writer string
	letter sdk.DeadLetter
}

func newShadow(store coordination.Definitions, session coordination.Session, log *slog.Logger, next pipeline.Observer) *shadow {
	s := &shadow{
		Observer: next, store: store, session: session, log: log,
		mine: map[string]bool{}, queue: make(chan aside, 256), done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		for a := range s.queue {
			s.mu.Lock()
			owner := s.owner
			s.mu.Unlock()
			s.add(context.Background(), owner, a.writer, a.letter)
		}
	}()
	return s
}

// close waits until all that was heard is copied. Nothing may be heard after it.
func (s *shadow) close() {
	close(s.queue)
	<-s.done
}

// DeadLettered implements pipeline.Observer. When the store is slower than the
// letters come, the next claim copies the rest.
func (s *shadow) DeadLettered(writer string, d sdk.DeadLetter) {
	s.mu.Lock()
	mine := s.mine[writer]
	s.mu.Unlock()
	if mine {
		select {
		case s.queue <- aside{writer, d}:
		default:
		}
	}
	s.Observer.DeadLettered(writer, d)
}

// Claim implements pipeline.Sink.
func (s shadowed) Claim(ctx context.Context, ex sdk.Execution) (*sdk.Claimed, error) {
	c, err := s.Sink.Claim(ctx, ex)
	if err != nil {
		return nil, err
	}
	var letters []sdk.DeadLetter
	if c != nil {
		letters = c.DeadLetters
	}
	s.mu.Lock()
	s.owner = coordination.Owner{TaskUID: ex.TaskUID, ExecutionID: ex.ID, Epoch: ex.Epoch}
	s.mine[ex.Writer] = true
	s.mu.Unlock()
	s.copy(ctx, ex, letters)
	return c, nil
}

// copy is for show: what it cannot store now the next claim stores.
func (s *shadow) copy(ctx context.Context, ex sdk.Execution, letters []sdk.DeadLetter) {
	p, err := s.store.Progress(ctx, ex.TaskUID, ex.Writer)
	if err != nil {
		s.log.Debug("dead letters are not copied", "writer", ex.Writer, "cause", err)
		return
	}
	step := coordination.Step{Writer: ex.Writer}
	for _, d := range p.DeadLetters {
		if !slices.ContainsFunc(letters, func(l sdk.DeadLetter) bool { return l.Number == d.Number }) {
			step.Dropped = append(step.Dropped, d.Number)
		}
	}
	for _, l := range letters {
		if !slices.ContainsFunc(p.DeadLetters, func(d coordination.DeadLetter) bool { return l.Number == d.Number }) {
			step.SetAside = append(step.SetAside, letterToStore(&l))
		}
	}
	if len(step.Dropped)+len(step.SetAside) == 0 {
		return
	}
	owner := coordination.Owner{TaskUID: ex.TaskUID, ExecutionID: ex.ID, Epoch: ex.Epoch}
	if err := s.session.Save(ctx, owner, step); err != nil {
		s.log.Debug("dead letters are not copied", "writer", ex.Writer, "cause", err)
	}
}

// add copies one that was set aside just now.
func (s *shadow) add(ctx context.Context, owner coordination.Owner, writer string, d sdk.DeadLetter) {
	err := s.session.Save(ctx, owner, coordination.Step{Writer: writer, SetAside: []coordination.DeadLetter{letterToStore(&d)}})
	if err != nil {
		s.log.Debug("a dead letter is not copied", "writer", writer, "cause", err)
	}
}

func letterToStore(d *sdk.DeadLetter) coordination.DeadLetter {
	return coordination.DeadLetter{
		Number: d.Number, Table: d.Table, Key: d.Key, Record: d.Record, At: d.At,
		Position: coordination.Position{Format: d.Position.Format, Version: d.Position.Version, Source: d.Position.Source, Ordinal: d.Position.Ordinal},
		Fault:    coordination.Fault{Code: string(d.Fault.Code), Message: d.Fault.Message, Retryable: d.Fault.Retryable, Suggestion: d.Fault.Suggestion},
	}
}
