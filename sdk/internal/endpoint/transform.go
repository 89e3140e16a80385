package endpoint

import (
	"bytes"
	"context"
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Transformer applies an sdk.Transform to whole blocks: it hands the rows of
// the schemas asked for to the transform, copies every other event as it is, and
// keeps transaction table and ordinals. It is not safe for concurrent use.
//
// In steady state it allocates for the definitions of a block's schemas alone.
type Transformer struct {
	transform sdk.Transform
	limits    batch.Limits
	plans     map[uint32]*plan
	reg       *batch.Registry
	block     batch.Block
	event     batch.Event
	out       *batch.Builder
	last      *batch.Schema // of the last event in the block, with its plan
	lastPlan  *plan
}

// plan is what the transform said about one schema.
type plan struct {
	in  *batch.Schema
	out *batch.Schema
}

// NewTransformer returns a Transformer for t.
func NewTransformer(t sdk.Transform, limits batch.Limits) *Transformer {
	return &Transformer{
		transform: t, limits: limits, plans: map[uint32]*plan{},
		reg: batch.NewRegistry(), out: batch.NewBuilder(limits),
	}
}

// Schema asks the transform for the layout of its output and keeps the answer
// for Apply. It returns in itself where the layout stays, sdk.Pass where rows are
// not touched and nil where they are dropped.
func (t *Transformer) Schema(ctx context.Context, in *batch.Schema) (*batch.Schema, error) {
	out, err := t.transform.Schema(ctx, in)
	if err != nil {
		return nil, err
	}
	if out != nil && out != sdk.Pass && out.ID != in.ID {
		return nil, sdk.Faultf(sdk.CodeInternal, "transform gave schema id %d to the output for %s, want that of the input, %d", out.ID, in.Name(), in.ID)
	}
	t.plans[in.ID] = &plan{in: in, out: out}
	if t.reg.Get(in.ID) == nil {
		if err := t.reg.Add(in); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Apply transforms the rows of the given schemas. The result is a whole block,
// valid until the next call.
func (t *Transformer) Apply(ctx context.Context, block []byte, schemas []uint64) ([]byte, error) {
	if err := t.decode(block); err != nil {
		return nil, err
	}
	plans := make(map[uint32]*plan, len(schemas))
	for _, id := range schemas {
		s := t.reg.Get(uint32(id))
		if s == nil || id > 1<<32-1 {
			continue // no event of the block can have it
		}
		p, err := t.plan(ctx, s)
		if err != nil {
			return nil, err
		}
		if p.out != sdk.Pass {
			plans[s.ID] = p
		}
	}
	t.last = nil
	t.out.Reset()
	t.out.Forget() // the result defines all schemas it uses
	for i := range t.block.Txs {
		if err := t.entry(ctx, &t.block.Txs[i], plans); err != nil {
			return nil, err
		}
	}
	return t.out.Finish()
}

// decode reads the block. A stream that was opened anew may use an id for
// another layout: then the block's definition replaces the one that was known.
func (t *Transformer) decode(block []byte) error {
	if err := t.block.Decode(block, t.reg, t.limits); err == nil {
		return nil
	}
	old := t.reg.All()
	t.reg = batch.NewRegistry()
	if err := t.block.Decode(block, t.reg, t.limits); err != nil {
		return err
	}
	for _, s := range old {
		if t.reg.Get(s.ID) == nil {
			if err := t.reg.Add(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// plan returns what was said about s, and asks when that was about another
// layout of the id, or never.
func (t *Transformer) plan(ctx context.Context, s *batch.Schema) (*plan, error) {
	p := t.plans[s.ID]
	if p != nil && p.in == s {
		return p, nil
	}
	if p == nil || !bytes.Equal(batch.AppendSchema(nil, p.in), batch.AppendSchema(nil, s)) {
		if _, err := t.Schema(ctx, s); err != nil {
			return nil, err
		}
		p = t.plans[s.ID]
	}
	if p.out == p.in {
		p.out = s // spares a comparison for each event copied
	}
	p.in = s
	return p, nil
}

func (t *Transformer) entry(ctx context.Context, tx *batch.Tx, plans map[uint32]*plan) error {
	if err := t.out.BeginTx(*tx); err != nil {
		return err
	}
	for i := tx.First; i < tx.First+tx.Count; i++ {
		if err := t.block.Event(i, &t.event); err != nil {
			return err
		}
		if err := t.one(ctx, plans); err != nil {
			return fmt.Errorf("event %d, ordinal %d of transaction %s: %w", i, t.event.Ordinal, tx.ID, err)
		}
	}
	return t.out.EndTx(tx.Ends, tx.Start, tx.End)
}

func (t *Transformer) one(ctx context.Context, plans map[uint32]*plan) error {
	e := &t.event
	var p *plan
	if e.Schema != nil {
		if e.Schema != t.last {
			t.last, t.lastPlan = e.Schema, plans[e.Schema.ID]
		}
		p = t.lastPlan
	}
	switch {
	case p == nil:
		return t.out.CopyEvent(e)
	case p.out == nil:
		return nil // the table is dropped, its truncates and ranges with it
	case !e.Kind.IsRow():
		// The event names the id alone: it stays as it is behind another layout.
		c := *e
		c.Schema = p.out
		return t.out.CopyEvent(&c)
	}
	t.out.HoldOrdinal(e.Ordinal)
	return t.transform.Apply(ctx, e, p.out, t.out)
}
