package pipeline

import (
	"context"
	"fmt"

	"github.com/datalink-go/datalink/sdk/batch"
)

// chain runs blocks through stages. Each stage sees only the rows of schemas
// that it changes; a block that has none passes untouched. It is used by one
// goroutine.
type chain struct {
	name   string // of the stages, for messages
	stages []*link
	regs   []*batch.Registry // regs[i] is before stage i, the last one after all
}

type link struct {
	stage   Stage
	decided map[uint32]bool // by schema id: the stage changes or drops it
	blk     batch.Block
	some    bool // it changes some schema seen so far
}

func newChain(name string, stages []Stage) *chain {
	c := &chain{name: name, regs: []*batch.Registry{batch.NewRegistry()}}
	for _, s := range stages {
		if r, ok := s.(interface{ Reset() }); ok {
			r.Reset() // what it knows by schema id is of the reader's last opening
		}
		c.stages = append(c.stages, &link{stage: s, decided: map[uint32]bool{}})
		c.regs = append(c.regs, batch.NewRegistry())
	}
	return c
}

// where names a stage.
func (c *chain) where(i int) string {
	if len(c.stages) == 1 {
		return c.name
	}
	return fmt.Sprintf("%s %d", c.name, i+1)
}

// last returns the registry of the chain's output.
func (c *chain) last() *batch.Registry { return c.regs[len(c.regs)-1] }

// size is how many events, and how many rows among them, a block has.
type size struct{ events, rows int }

func sizeOf(b *batch.Block) size { return size{b.Len(), rows(b)} }

// run returns the block after all stages and its size before them.
func (c *chain) run(ctx context.Context, data []byte) (out []byte, before size, err error) {
	if len(c.stages) == 0 {
		var b batch.Block
		if err := b.Decode(data, c.regs[0], batch.Limits{}); err != nil {
			return nil, before, err
		}
		return data, sizeOf(&b), nil
	}
	for i, l := range c.stages {
		if err := l.blk.Decode(data, c.regs[i], batch.Limits{}); err != nil {
			return nil, before, fmt.Errorf("before %s: %w", c.where(i), err)
		}
		if i == 0 {
			before = sizeOf(&l.blk)
		}
		if err := l.learn(ctx, c.regs[i], c.regs[i+1]); err != nil {
			return nil, before, err
		}
		ids, err := l.wanted()
		if err != nil {
			return nil, before, err
		}
		if ids == nil {
			continue
		}
		if data, err = l.stage.Apply(ctx, data, ids); err != nil {
			return nil, before, fmt.Errorf("%s: %w", c.where(i), err)
		}
	}
	return data, before, nil
}

// learn asks the stage about the schemas that are new in its block. Those it
// leaves alone pass to the next registry, since later blocks may come without
// their definition.
func (l *link) learn(ctx context.Context, before, after *batch.Registry) error {
	for _, id := range l.blk.Definitions() {
		if _, ok := l.decided[id]; ok {
			continue
		}
		s := before.Get(id)
		out, err := l.stage.Schema(ctx, s)
		if err != nil {
			return fmt.Errorf("layout of %s: %w", s.Name(), err)
		}
		l.decided[id] = out != s
		l.some = l.some || out != s
		if out != nil {
			if err := after.Add(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted returns the ids in the block that the stage changes.
func (l *link) wanted() ([]uint32, error) {
	if !l.some {
		return nil, nil
	}
	var ids []uint32
	for _, id := range l.blk.Definitions() {
		if l.decided[id] {
			ids = append(ids, id) // its definition changes, even if no row uses it
		}
	}
	var ev batch.Event
	_, onDDL := l.stage.(DDLStage)
next:
	for i := range l.blk.Len() {
		if err := l.blk.Event(i, &ev); err != nil {
			return nil, err
		}
		if ev.Kind == batch.DDL && onDDL && len(ids) == 0 {
			return []uint32{}, nil
		}
		if ev.Schema == nil || !l.decided[ev.Schema.ID] {
			continue
		}
		for _, id := range ids {
			if id == ev.Schema.ID {
				continue next
			}
		}
		ids = append(ids, ev.Schema.ID)
	}
	return ids, nil
}
