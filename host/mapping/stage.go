package mapping

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Stage applies rules to blocks. The first rule that matches a table counts, and
// with it all later ones with the same From: each gives a target table of its own.
// Tables that none matches keep their columns and get the default name.
type Stage struct {
	rules  []*rule
	naming Naming
	region uint32 // of the ids of tables beyond the first

	mu    sync.Mutex // Schema and Apply of one stage may come from two goroutines
	plans map[uint32][]*plan
	reg   *batch.Registry
	next  uint32
	blk   batch.Block
	out   *batch.Builder
	vals  [2][]batch.Value
	env   map[string]any
}

var _ pipeline.DDLStage = (*Stage)(nil)

// New returns a stage. Errors name the rule that is wrong.
func New(rules []Rule, naming Naming) (*Stage, error) {
	s := &Stage{naming: naming, env: map[string]any{}}
	targets := map[string]string{}
	for i, r := range rules {
		c, err := compile(r)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		s.rules = append(s.rules, c)
		s.region = crc32.Update(s.region, crc32.IEEETable, []byte(fmt.Sprintf("%d %+v\n", i, r)))
		if r.To == "" {
			continue
		}
		if other, taken := targets[r.To]; taken && other != r.From {
			for _, o := range s.rules {
				o.shares = o.shares || o.To == r.To
			}
		}
		targets[r.To] = r.From
	}
	s.region = 1<<31 | s.region&0x7fff0000
	s.reset()
	return s, nil
}

// reset forgets all schemas: the reader was opened again and numbers them anew.
func (s *Stage) reset() {
	s.plans = map[uint32][]*plan{}
	s.reg = batch.NewRegistry()
	s.out = batch.NewBuilder(batch.Limits{})
	s.next = 0
}

// id returns a schema id for a table beyond the first that a schema leads to. Ids
// of readers are small; those of a stage lie in a region of its own.
func (s *Stage) id() (uint32, error) {
	for s.next < 1<<16 {
		id := s.region | s.next
		s.next++
		if s.reg.Get(id) == nil {
			return id, nil
		}
	}
	return 0, sdk.Faultf(sdk.CodeRefused, "the mappings make more than %d target tables", 1<<16).Suggest("name tables by fewer values")
}

// ChangesDDL marks the stage as one that renames tables in schema changes.
func (s *Stage) ChangesDDL() {}

// match returns the rules of a table; nil stands for the default.
func (s *Stage) match(name string) []*rule {
	for i, r := range s.rules {
		if _, ok := r.match(name); !ok {
			continue
		}
		out := []*rule{r}
		for _, more := range s.rules[i+1:] {
			if more.From == r.From && r.From != "" {
				out = append(out, more)
			}
		}
		return out
	}
	return []*rule{nil}
}

// Schema returns the layout after the rules, in itself where they change nothing.
func (s *Stage) Schema(_ context.Context, in *batch.Schema) (*batch.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.plans[in.ID]; p != nil && !bytes.Equal(batch.AppendSchema(nil, p[0].in), batch.AppendSchema(nil, in)) {
		s.reset() // another stream: all its schemas are asked for again
	}
	p, err := s.plan(in)
	if err != nil {
		return nil, err
	}
	if len(p) > 1 && p[0].out == in {
		return in.Clone(), nil // Apply is wanted for the others
	}
	return p[0].out, nil
}

func (s *Stage) plan(in *batch.Schema) ([]*plan, error) {
	if p := s.plans[in.ID]; p != nil {
		return p, nil
	}
	if err := s.reg.Add(in); err != nil {
		return nil, err
	}
	var plans []*plan
	seen := map[string]bool{}
	for i, r := range s.match(in.Name()) {
		p, err := newPlan(r, s.naming, in)
		if err != nil {
			return nil, err
		}
		if seen[p.out.Name()] && p.routes == nil {
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "two mappings of %s lead to %s", in.Name(), p.out.Name()).Suggest("give each a target of its own")
		}
		seen[p.out.Name()] = true
		if i > 0 {
			if p.out.ID, err = s.id(); err != nil {
				return nil, err
			}
		} else if !p.changes() {
			p.out = in
		}
		plans = append(plans, p)
	}
	s.plans[in.ID] = plans
	return plans, nil
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
		plans, err := s.plan(s.reg.Get(id))
		if err != nil {
			return nil, err
		}
		for _, p := range plans {
			if err := s.out.Define(p.out); err != nil {
				return nil, err
			}
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
	plans, err := s.plan(e.Schema)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if e.Kind.IsRow() {
			err = s.row(p, e)
		} else {
			err = s.table(p, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// table passes on what concerns a whole table or a range of it. The range of a
// snapshot says that no other rows are between its keys, which a table with rows
// of others does not obey.
func (s *Stage) table(p *plan, e *batch.Event) error {
	switch {
	case p.shared && e.Kind == batch.Truncate:
		return sdk.Faultf(sdk.CodeRefused, "%s was emptied, and its rows share target tables with others (%s → %s)", p.in.Name(), p.rule.From, p.rule.To).
			Suggest("delete the table's rows at the target by hand, and go on after this place with task position --set")
	case p.shared:
		return nil
	case p.out.ID == p.in.ID:
		c := *e
		c.Schema = p.out
		return s.out.CopyEvent(&c)
	}
	s.out.SetOrdinal(e.Ordinal)
	if e.Kind == batch.Truncate {
		return s.out.Truncate(p.out)
	}
	r, err := e.KeyRange()
	if err != nil {
		return err
	}
	return s.out.KeyRange(p.out, r)
}
