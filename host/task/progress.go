package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
)

// progress keeps the progress of writers without storage of their own in the
// coordination store.
type progress struct {
	store   Store
	session coordination.Session
	status  func() coordination.Status
	// upgrade rewrites a position of an older version of the reader.
	upgrade func(sdk.Position) (sdk.Position, error)

	mu       sync.Mutex
	ceilings map[string]uint64
	refused  bool // a conditional write was
	lost     bool // the session was
}

var _ pipeline.Progress = (*progress)(nil)

// reserveAhead is how many versions (microseconds of a hybrid clock) are reserved
// at a time, so that the store is asked once in that time.
const reserveAhead = uint64(30 * time.Second / time.Microsecond)

// reserveTime bounds the wait for the store: its ceiling is a copy of the target's.
const reserveTime = 2 * time.Second

// Load implements pipeline.Progress.
func (p *progress) Load(ctx context.Context, writer string) (*sdk.Claimed, error) {
	have, err := p.store.Progress(ctx, p.status().TaskUID, writer)
	if err != nil {
		return nil, p.note(err)
	}
	c := claimedOf(have)
	for i := range c.Points {
		if c.Points[i].Position.IsZero() || p.upgrade == nil {
			continue
		}
		if c.Points[i].Position, err = p.upgrade(c.Points[i].Position); err != nil {
			return nil, unreadable(writer, c.Points[i].Lane, err)
		}
	}
	return c, nil
}

// Save implements pipeline.Progress.
func (p *progress) Save(ctx context.Context, writer string, s *pipeline.Saved) error {
	step := coordination.Step{Writer: writer, Dropped: s.Dropped}
	for _, x := range s.Points {
		step.Points = append(step.Points, coordination.Point{Lane: x.Lane, BatchNo: x.BatchNo, Position: toStore(x.Position)})
	}
	for _, x := range s.State {
		step.Items = append(step.Items, coordination.Item{Key: x.Key, Version: x.Version, Value: x.Value, Deleted: x.Deleted})
	}
	for i := range s.SetAside {
		step.SetAside = append(step.SetAside, letterToStore(&s.SetAside[i]))
	}
	st := p.status()
	return p.note(p.session.Save(ctx, st.Owner(), step))
}

// Reserve implements pipeline.Progress.
func (p *progress) Reserve(ctx context.Context, writer string, want uint64) (uint64, error) {
	p.mu.Lock()
	have := p.ceilings[writer]
	p.mu.Unlock()
	if want <= have {
		return have, nil
	}
	next := want + reserveAhead
	st := p.status()
	brief, cancel := context.WithTimeout(ctx, reserveTime)
	defer cancel()
	err := p.session.Save(brief, st.Owner(), coordination.Step{Writer: writer, Ceiling: next})
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, coordination.ErrFenced), errors.Is(err, coordination.ErrSessionLost):
		return 0, p.note(err)
	default: // the store does not answer; the target's own row is the authority
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ceilings == nil {
		p.ceilings = map[string]uint64{}
	}
	p.ceilings[writer] = max(p.ceilings[writer], next)
	return p.ceilings[writer], nil
}

func (p *progress) note(err error) error {
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = p.refused || errors.Is(err, coordination.ErrFenced)
	p.lost = p.lost || errors.Is(err, coordination.ErrSessionLost)
	return faultOf(err)
}

func (p *progress) found() (refused, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused, p.lost
}
