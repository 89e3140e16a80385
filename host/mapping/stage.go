package mapping

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Stage applies rules to blocks. The first rule that matches a table counts;
// tables that none matches keep their columns and get the default name.
type Stage struct {
	rules  []*rule
	naming Naming

	mu    sync.Mutex // Schema and Apply of one stage may come from two goroutines
	plans map[uint32]*plan
	reg   *batch.Registry
	blk   batch.Block
	out   *batch.Builder
	vals  [2][]batch.Value
	env   map[string]any
}

var _ pipeline.DDLStage = (*Stage)(nil)

// New returns a stage. Errors name the rule that is wrong.
func New(rules []Rule, naming Naming) (*Stage, error) {
	s := &Stage{naming: naming, env: map[string]any{}}
	for i, r := range rules {
		c, err := compile(r)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		s.rules = append(s.rules, c)
	}
	s.reset()
	return s, nil
}

// reset forgets all schemas: the reader was opened again and numbers them anew.
func (s *Stage) reset() {
	s.plans = map[uint32]*plan{}
	s.reg = batch.NewRegistry()
	s.out = batch.NewBuilder(batch.Limits{})
}

// ChangesDDL marks the stage as one that renames tables in schema changes.
func (s *Stage) ChangesDDL() {}

func (s *Stage) match(name string) *rule {
	for _, r := range s.rules {
		if r.matches(name) {
			return r
		}
	}
	return nil
}

// Schema returns the layout after the rules, in itself where they change nothing.
func (s *Stage) Schema(_ context.Context, in *batch.Schema) (*batch.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.plans[in.ID]; p != nil && !bytes.Equal(batch.AppendSchema(nil, p.in), batch.AppendSchema(nil, in)) {
		s.reset() // another stream: all its schemas are asked for again
	}
	p, err := s.plan(in)
	if err != nil {
		return nil, err
	}
	return p.out, nil
}

func (s *Stage) plan(in *batch.Schema) (*plan, error) {
	if p := s.plans[in.ID]; p != nil {
		return p, nil
	}
	p, err := newPlan(s.match(in.Name()), s.naming, in)
	if err != nil {
		return nil, err
	}
	if !p.changes() {
		p.out = in
	}
	s.plans[in.ID] = p
	return p, s.reg.Add(in)
}

// Apply maps one block.
func (s *Stage) Apply(_ context.Context, block []byte, _ []uint32) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.blk.Decode(block, s.reg, batch.Limits{}); err != nil {
		return nil, err
	}
	s.out.Reset()
	s.out.Forget()
	for _, id := range s.blk.Definitions() {
		p, err := s.plan(s.reg.Get(id))
		if err != nil {
			return nil, err
		}
		if err := s.out.Define(p.out); err != nil {
			return nil, err
		}
	}
	var e batch.Event
	for t := range s.blk.Txs {
		tx := s.blk.Txs[t]
		if err := s.out.BeginTx(tx); err != nil {
			return nil, err
		}
		for i := tx.First; i < tx.First+tx.Count; i++ {
			if err := s.blk.Event(i, &e); err != nil {
				return nil, err
			}
			if err := s.event(&e); err != nil {
				return nil, err
			}
		}
		if err := s.out.EndTx(tx.Ends, tx.Start, tx.End); err != nil {
			return nil, err
		}
	}
	data, err := s.out.Finish()
	if err != nil {
		return nil, err
	}
	return bytes.Clone(data), nil
}

func (s *Stage) event(e *batch.Event) error {
	if e.Kind == batch.DDL {
		return s.ddl(e)
	}
	if e.Schema == nil {
		return s.out.CopyEvent(e)
	}
	p, err := s.plan(e.Schema)
	if err != nil {
		return err
	}
	if !e.Kind.IsRow() {
		c := *e
		c.Schema = p.out
		return s.out.CopyEvent(&c)
	}
	kind, err := s.filter(p, e)
	if err != nil || kind == batch.KindInvalid {
		return err
	}
	return p.emit(s.out, e, kind, &s.vals)
}

// ddl renames tables and columns in a schema change as it does in schemas.
func (s *Stage) ddl(e *batch.Event) error {
	c, err := e.Change()
	if err != nil {
		return err
	}
	from := &batch.Schema{Namespace: c.Namespace, Table: c.Table}
	oldSpace, oldTable := c.OldTable()
	r := s.match(from.Name())
	c.Namespace, c.Table = r.target(from, s.naming)
	if c.Kind == batch.DDLRenameTable {
		old := &batch.Schema{Namespace: oldSpace, Table: oldTable}
		c.SetOldTable(s.match(old.Name()).target(old, s.naming))
	}
	if r != nil && c.Column != nil {
		if !r.keep(c.Column.Name) {
			return nil
		}
		if n := r.Rename[c.Column.Name]; n != "" {
			c.Column.Name = n
		}
	}
	if c.Schema != nil {
		p, err := newPlan(s.match(c.Schema.Name()), s.naming, c.Schema)
		if err != nil {
			return err
		}
		c.Schema = p.out
	}
	s.out.SetOrdinal(e.Ordinal)
	return s.out.Change(c)
}
