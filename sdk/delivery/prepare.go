package delivery

import (
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// planOf returns the plan of the event's schema. A schema that is new is
// prepared at the target first.
func (d *dispatcher) planOf(ev *batch.Event, q *request, i int) (*plan, error) {
	s := ev.Schema
	if s == nil {
		return nil, sdk.Faultf(sdk.CodeInternal, "block %d: %s event without a schema", q.seq, ev.Kind)
	}
	if d.last != nil && d.last.schema == s {
		return d.last, nil
	}
	p := d.plans[s]
	if p == nil {
		var err error
		if p, err = d.prepare(s); err != nil {
			return nil, err
		}
		if len(d.run.lanes) > 1 && d.unit == nil {
			// What the lanes have may be tied to rows of the new schema in ways that
			// were not known.
			if err := d.stop(q, i, ev.Ordinal); err != nil {
				return nil, err
			}
		}
	}
	d.last = p
	return p, nil
}

func (d *dispatcher) prepare(s *batch.Schema) (*plan, error) {
	r := d.run
	var c sdk.Constraints
	wait := r.cfg.Backoff
	for try := 0; ; try++ {
		var err error
		r.e.prepare.Lock()
		c, err = r.e.target.Prepare(r.ctx, s)
		r.e.prepare.Unlock()
		if err == nil {
			break
		}
		if f := sdk.AsFault(err); !(f.Retryable || f.Code == sdk.CodeUnavailable) || try >= r.cfg.Retries || r.ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		case <-r.cfg.Clock.After(wait):
		}
		wait = min(2*wait, 2*time.Second)
	}
	if r.cfg.Switches.TiesOff {
		c.Uniques, c.ForeignKeys = nil, nil
	}
	d.learn(s, s.ForeignKeys)
	d.learn(s, c.ForeignKeys)
	p := d.table(s.Name()).plan(s, c, d.gen)
	p.constraints = c
	p.table.last = p
	d.plans[s] = p
	return p, nil
}

func (d *dispatcher) table(name string) *table {
	t := d.tables[name]
	if t == nil {
		t = &table{name: name, seed: hashString(0, name)}
		d.tables[name] = t
	}
	return t
}

// learn registers foreign keys at the tables they refer to, whose plans are made
// anew.
func (d *dispatcher) learn(s *batch.Schema, fks []batch.ForeignKey) {
	for i := range fks {
		t := d.table(referred(s, &fks[i]))
		r := reference(s, &fks[i])
		known := false
		for _, old := range t.refs {
			known = known || old.seed == r.seed
		}
		if known {
			continue
		}
		t.refs = append(t.refs, r)
		d.gen++
		d.last = nil
		for schema, old := range d.plans {
			if old.table == t {
				p := t.plan(schema, old.constraints, d.gen)
				p.constraints = old.constraints
				d.plans[schema] = p
			}
		}
	}
}
