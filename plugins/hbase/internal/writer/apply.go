package writer

import (
	"context"
	"errors"
	"slices"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// ApplyAt writes changes at their versions. Where order of arrival counts
// (event-time), and around changes that read the table, segments are written one
// after the other; else all at once, since no order can harm.
func (w *Writer) ApplyAt(ctx context.Context, c *sdk.Changes) ([]sdk.RecordError, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	top := c.Ceiling
	for _, s := range c.Segments {
		for i := range s {
			top = max(top, s[i].Version+1)
		}
	}
	if err := w.hold(ctx, top, c.To); err != nil {
		return nil, err
	}
	var records []sdk.RecordError
	a := &apply{w: w, ctx: ctx, tables: map[string]*encoder{}}
	index := 0
	for _, s := range c.Segments {
		for i := range s {
			err := a.change(&s[i], index)
			index++
			if err == nil {
				continue
			}
			var f *sdk.Fault
			if errors.As(err, &f) && (f.Code == sdk.CodeUnfit || f.Code == sdk.CodeMissingRow || f.Code == sdk.CodeTooLarge) {
				records = append(records, sdk.RecordError{Index: index - 1, Err: f})
				continue
			}
			return nil, err
		}
		if w.cfg.Version == ByEventTime {
			more, err := a.flush()
			if err != nil {
				return nil, err
			}
			records = append(records, more...)
		}
	}
	more, err := a.flush()
	if err != nil {
		return nil, err
	}
	records = append(records, more...)
	slices.SortFunc(records, func(a, b sdk.RecordError) int { return a.Index - b.Index })
	return slices.CompactFunc(records, func(a, b sdk.RecordError) bool { return a.Index == b.Index }), nil
}

// apply is one ApplyAt.
type apply struct {
	w      *Writer
	ctx    context.Context
	tables map[string]*encoder
	order  []string
	last   string
	enc    *encoder
}

func (a *apply) encoder(table string) *encoder {
	if a.enc != nil && a.last == table {
		return a.enc
	}
	e := a.tables[table]
	if e == nil {
		if e = a.w.enc.spare(); len(a.tables) > 0 {
			e = &encoder{}
		}
		e.reset()
		a.tables[table] = e
		a.order = append(a.order, table)
	}
	a.last, a.enc = table, e
	return e
}

// spare returns the encoder whose buffers are kept.
func (e *encoder) spare() *encoder { return e }

// flush writes what was made.
func (a *apply) flush() ([]sdk.RecordError, error) {
	var records []sdk.RecordError
	for _, table := range a.order {
		e := a.tables[table]
		if len(e.muts) == 0 {
			continue
		}
		errs, err := a.w.store.Batch(a.ctx, table, e.muts)
		if err != nil {
			return nil, fault(err)
		}
		for i, err := range errs {
			switch {
			case err == nil, a.w.cfg.Switches.DropFailed:
			case rpc.Unfit(err):
				f := sdk.Faultf(sdk.CodeUnfit, "row %q of %s: %v", e.muts[i].Row, table, err)
				records = append(records, sdk.RecordError{Index: e.owners[i], Err: f})
			default:
				return nil, fault(err)
			}
		}
		e.reset()
	}
	return records, nil
}

func (a *apply) change(c *sdk.Change, index int) error {
	w := a.w
	if c.Op == sdk.Alter {
		return a.alter(c, index)
	}
	p := w.plans[c.Schema]
	if p == nil {
		return sdk.Faultf(sdk.CodeInternal, "change of %s, whose layout was not prepared", c.Schema.Name())
	}
	switch c.Op {
	case sdk.Truncate, sdk.Reconcile:
		return a.sweep(p, c, index)
	}
	e := a.encoder(p.table)
	switch c.Op {
	case sdk.Upsert, sdk.Patch:
		var err error
		if e.values, err = c.After.Values(e.values); err != nil {
			return err
		}
		row, err := e.keyOf(p, c.Key)
		if err != nil {
			return err
		}
		ts, err := w.stamp(p, row, c)
		if err != nil {
			return err
		}
		return e.put(w, p, row, e.values, ts, c.Op == sdk.Upsert, index)
	case sdk.Remove:
		row, err := e.keyOf(p, c.Key)
		if err != nil {
			return err
		}
		ts, err := w.stamp(p, row, c)
		if err != nil {
			return err
		}
		e.remove(w, p, row, ts, index)
		return nil
	case sdk.Rekey:
		return a.rekey(p, e, c, index)
	}
	return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s of %s: a writer of versions cannot do it", c.Op, c.Schema.Name())
}

// stamp returns the timestamp of a change's cells.
func (w *Writer) stamp(p *plan, row []byte, c *sdk.Change) (uint64, error) {
	switch {
	case w.cfg.Switches.ServerTime:
		return rpc.LatestTimestamp, nil
	case w.cfg.Version == ByEventTime:
		if c.Committed <= 0 && (c.Kind == batch.Read || c.Kind == batch.Range) {
			// A snapshot shows what is there now.
			return w.clock.above(p.table, row, uint64(w.cfg.Now().UnixMilli())), nil
		}
		return w.clock.stamp(p.table, row, c)
	case c.Version == 0:
		return 0, sdk.Faultf(sdk.CodeInternal, "change of %s without a version", p.schema.Name())
	}
	return c.Version, nil
}

// rekey removes the row of the old key and writes the new one whole. Columns that
// the change leaves out are read from the old row, as it was before this version.
func (a *apply) rekey(p *plan, e *encoder, c *sdk.Change, index int) error {
	w := a.w
	var err error
	if e.values, err = c.After.Values(e.values); err != nil {
		return err
	}
	part := slices.ContainsFunc(e.values, func(v batch.Value) bool { return v.State == batch.Absent || v.State == batch.Unchanged })
	if part {
		// An earlier change in this batch may have written what is to be read.
		if recs, err := a.flush(); err != nil {
			return err
		} else if len(recs) > 0 {
			return recs[0].Err
		}
	}
	old, err := e.keyOf(p, c.OldKey)
	if err != nil {
		return err
	}
	row, err := e.keyOf(p, c.Key)
	if err != nil {
		return err
	}
	ts, err := w.stamp(p, row, c)
	if err != nil {
		return err
	}
	if part {
		if err := a.carry(p, e, old, row, ts, index); err != nil {
			return err
		}
	}
	if !same(old, row) {
		e.remove(w, p, old, ts, index)
	}
	return e.put(w, p, row, e.values, ts, true, index)
}

// carry copies the cells of columns that a change of key leaves out.
func (a *apply) carry(p *plan, e *encoder, old, row []byte, ts uint64, index int) error {
	cells, err := a.w.store.Get(a.ctx, p.table, rpc.Get{Row: old, Range: rpc.TimeRange{To: ts}})
	if err != nil {
		return fault(err)
	}
	if len(cells) == 0 {
		return sdk.Faultf(sdk.CodeMissingRow, "row %q of %s: its key changes, columns are left out of the change, and it is not there to take them from", old, p.table).
			Suggest("let the source write full row images")
	}
	m := e.begin(row)
	for i := range p.columns {
		col := &p.columns[i]
		if v := &e.values[i]; col.skip || v.State != batch.Absent && v.State != batch.Unchanged {
			continue
		}
		for k := range cells {
			if same(cells[k].Family, col.family) && same(cells[k].Qualifier, col.qualifier) {
				m.Put(col.family, col.qualifier, ts, cells[k].Value)
				break
			}
		}
	}
	e.end(a.w, &m, index)
	return nil
}
