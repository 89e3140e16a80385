package daemon

import (
	"context"
	"log/slog"
	"slices"

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

// shadow is the copies of one task's run.
type shadow struct {
	store   coordination.Definitions
	session coordination.Session
	log     *slog.Logger
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
