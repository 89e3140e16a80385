package reference

import (
	"context"
	"maps"
	"slices"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// progress is the bookkeeping of one task and writer.
type progress struct {
	taskUID, storeUID string
	execution         string
	epoch             uint64
	claimNo           uint64
	mapping           string
	lanes             []sdk.Point
	state             map[string]batch.StateItem
	letters           map[uint64]sdk.DeadLetter
}

func (p *progress) clone() *progress {
	c := *p
	c.lanes = slices.Clone(p.lanes)
	c.state = maps.Clone(p.state)
	c.letters = maps.Clone(p.letters)
	return &c
}

// Transactional is a writer on a Database: one plugin process.
type Transactional struct {
	db   *Database
	name string
	ex   sdk.Execution
	no   uint64 // of the claim
}

var _ sdk.TransactionalWriter = (*Transactional)(nil)

// NewTransactional returns a writer on db.
func NewTransactional(db *Database) *Transactional { return &Transactional{db: db} }

// Check finds nothing.
func (w *Transactional) Check(context.Context) ([]sdk.Finding, error) { return nil, nil }

// Close does nothing.
func (w *Transactional) Close(context.Context) error { return nil }

// Claim takes the target; see sdk.Target. Lanes and mapping change where all
// lanes stand at one position; else the old ones stay.
func (w *Transactional) Claim(_ context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	if err := w.db.hook("claim", nil); err != nil {
		return sdk.Claimed{}, err
	}
	d := w.db
	d.mu.Lock()
	defer d.mu.Unlock()
	w.name = ex.Task + "\x00" + ex.Writer
	p := d.progress[w.name]
	if p == nil {
		p = &progress{state: map[string]batch.StateItem{}, letters: map[uint64]sdk.DeadLetter{}}
	} else {
		p = p.clone()
		switch {
		case (p.taskUID != ex.TaskUID || p.storeUID != ex.StoreUID) && !ex.TakeOver:
			return sdk.Claimed{}, sdk.ErrForeignClaim
		case p.taskUID != ex.TaskUID || p.storeUID != ex.StoreUID:
		case ex.Epoch < p.epoch, ex.Epoch == p.epoch && ex.ID != p.execution:
			return sdk.Claimed{}, sdk.ErrFenced
		}
	}
	p.taskUID, p.storeUID, p.execution, p.epoch = ex.TaskUID, ex.StoreUID, ex.ID, ex.Epoch
	p.claimNo++
	if err := p.layout(ex); err != nil {
		return sdk.Claimed{}, err
	}
	d.progress[w.name] = p
	// Open transactions of the last holder are ended, as their sessions would be.
	for _, t := range d.locks {
		if t.w.name == w.name && t.w != w {
			t.done = true
		}
	}
	maps.DeleteFunc(d.locks, func(_ string, t *tx) bool { return t.done })
	w.ex, w.no = ex, p.claimNo
	c := sdk.Claimed{Points: slices.Clone(p.lanes), Lanes: int32(len(p.lanes)), Mapping: p.mapping}
	for _, k := range slices.Sorted(maps.Keys(p.state)) {
		c.State = append(c.State, p.state[k])
	}
	for _, k := range slices.Sorted(maps.Keys(p.letters)) {
		c.DeadLetters = append(c.DeadLetters, p.letters[k])
	}
	return c, nil
}

// layout gives the progress the lanes and the mapping of ex, where that can be.
func (p *progress) layout(ex sdk.Execution) error {
	n := max(int(ex.Lanes), 1)
	if len(p.lanes) == n && p.mapping == ex.Mapping {
		return nil
	}
	var at sdk.Point
	for i, l := range p.lanes {
		if i > 0 && !same(l.Position, at.Position) {
			return nil
		}
		at.Position, at.BatchNo = l.Position, max(at.BatchNo, l.BatchNo)
	}
	p.mapping = ex.Mapping
	if len(p.lanes) == n {
		return nil
	}
	p.lanes = make([]sdk.Point, n)
	for i := range p.lanes {
		p.lanes[i] = sdk.Point{Writer: ex.Writer, Lane: int32(i), BatchNo: at.BatchNo, Position: at.Position}
	}
	return nil
}

func same(a, b sdk.Position) bool {
	return a.Format == b.Format && a.Version == b.Version && a.Ordinal == b.Ordinal && string(a.Source) == string(b.Source)
}

// Prepare creates the table where it is not there.
func (w *Transactional) Prepare(_ context.Context, s *batch.Schema) (sdk.Constraints, error) {
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	t := w.db.define(s)
	var c sdk.Constraints
	for _, u := range t.uniques {
		c.Uniques = append(c.Uniques, batch.Index{Name: u.name, Columns: u.columns})
	}
	c.Referenced = w.db.referenced(t)
	return c, nil
}

// Settle reads a lane's progress.
func (w *Transactional) Settle(_ context.Context, lane int32) (sdk.Point, error) {
	if err := w.db.hook("settle", []int32{lane}); err != nil {
		return sdk.Point{}, err
	}
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	p := w.db.progress[w.name]
	if err := w.fenced(p); err != nil {
		return sdk.Point{}, err
	}
	return p.lanes[lane], nil
}

// fenced is an error where the target is not this writer's any more.
func (w *Transactional) fenced(p *progress) error {
	switch {
	case w.db.FenceOff:
		return nil
	case p == nil:
		return sdk.ErrTargetWentBack
	case p.epoch > w.ex.Epoch || p.epoch == w.ex.Epoch && p.execution != w.ex.ID || p.claimNo > w.no:
		return sdk.ErrFenced
	case p.epoch < w.ex.Epoch || p.claimNo < w.no:
		return sdk.ErrTargetWentBack
	}
	return nil
}
