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

	mu     sync.Mutex
	cond   *sync.Cond // queue, saving or closed changed
	owner  coordination.Owner
	mine   map[string]bool // writers whose letters are copied
	queue  []aside
	saving bool
	closed bool
	done   chan struct{}
}

// maxAside bounds the letters that wait to be copied: the pipeline waits then.
const maxAside = 256

type aside struct {
	writer string
	letter sdk.DeadLetter
}

func newShadow(store coordination.Definitions, session coordination.Session, log *slog.Logger, next pipeline.Observer) *shadow {
	s := &shadow{Observer: next, store: store, session: session, log: log, mine: map[string]bool{}, done: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	go s.work()
	return s
}

// work copies what waits, all of a writer in one step.
func (s *shadow) work() {
	defer close(s.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.queue) == 0 {
			if s.closed {
				return
			}
			s.cond.Wait()
		}
		owner, all := s.owner, s.queue
		s.queue, s.saving = nil, true
		s.mu.Unlock()
		steps := map[string][]coordination.DeadLetter{}
		for i := range all {
			steps[all[i].writer] = append(steps[all[i].writer], letterToStore(&all[i].letter))
		}
		for writer, letters := range steps {
			if err := s.session.Save(context.Background(), owner, coordination.Step{Writer: writer, SetAside: letters}); err != nil {
				s.log.Debug("dead letters are not copied", "writer", writer, "cause", err)
			}
		}
		s.mu.Lock()
		s.saving = false
		s.cond.Broadcast()
	}
}

// flush waits until all that was heard is copied. The store takes copies from the
// task's owner only: it comes before the task is given up.
func (s *shadow) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 || s.saving {
		s.cond.Wait()
	}
}

// close ends the copying. Nothing may be heard after it.
func (s *shadow) close() {
	s.mu.Lock()
	s.closed = true
	s.cond.Broadcast()
	s.mu.Unlock()
	<-s.done
}

// DeadLettered implements pipeline.Observer.
func (s *shadow) DeadLettered(writer string, d sdk.DeadLetter) {
	s.mu.Lock()
	if s.mine[writer] {
		for len(s.queue) >= maxAside {
			s.cond.Wait()
		}
		s.queue = append(s.queue, aside{writer, d})
		s.cond.Broadcast()
	}
	s.mu.Unlock()
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

func letterToStore(d *sdk.DeadLetter) coordination.DeadLetter {
	return coordination.DeadLetter{
		Number: d.Number, Table: d.Table, Key: d.Key, Record: d.Record, At: d.At,
		Position: coordination.Position{Format: d.Position.Format, Version: d.Position.Version, Source: d.Position.Source, Ordinal: d.Position.Ordinal},
		Fault:    coordination.Fault{Code: string(d.Fault.Code), Message: d.Fault.Message, Retryable: d.Fault.Retryable, Suggestion: d.Fault.Suggestion},
	}
}
