package mysql

import (
	"context"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// Limits of one packet: the driver keeps a buffer of 256 KiB and allocates what is
// larger.
const (
	packetText = 240 << 10
	packetRows = 4096
	// Conditions on keys of several columns cost the optimizer more each.
	packetKeys = 500
	// Statements of one packet that change single rows.
	packetSingles = 200
)

// applier writes the changes of a lane's transactions. Its buffers serve all of
// them.
type applier struct {
	w        *Writer
	s        *session
	ctx      context.Context //nolint:containedctx // of the Apply that runs
	text     []byte
	before   []batch.Value
	after    []batch.Value
	mask     []byte
	maskB    []byte
	groups   target.Groups
	rows     []int32 // changes whose rows stand in text
	bad      []sdk.RecordError
	base     int           // index of the segment's first change
	replaced int           // values replaced by policy
	misses   map[*plan]int // how often rows were there already when they were loaded
	t        *tx
	later    [][]sdk.Change // segments that follow
}

// Apply writes the changes, segment by segment. Within a segment they are grouped
// by table and operation. It goes on to the end of a segment after a change that
// cannot be written, to name as many as there are.
func (t *tx) Apply(ctx context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	if t.done || !t.fenced {
		return nil, sdk.Faultf(sdk.CodeInternal, "changes for a transaction that was not fenced or has ended")
	}
	a := &t.l.a
	a.w, a.s, a.ctx, a.t, a.bad, a.base = t.w, t.l.s, ctx, t, nil, 0
	for i, seg := range ch.Segments {
		a.later = ch.Segments[i+1:]
		if err := a.segment(seg); err != nil {
			return nil, t.w.fault("changes", err)
		}
		failpoint.Hit("rdbms.row")
		if len(a.bad) > 0 {
			return a.bad, nil
		}
		a.base += len(seg)
	}
	if a.replaced > 0 {
		t.w.cfg.Log.Warn("values that the target cannot hold were replaced", "policy", t.w.cfg.OnUnfit, "values", a.replaced)
		t.w.cfg.Stats.Replaced.Add(uint64(a.replaced))
		a.replaced = 0
	}
	return nil, nil
}

func (a *applier) segment(seg []sdk.Change) error {
	for _, g := range a.groups.Of(seg) {
		if err := a.group(seg, &g); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) group(seg []sdk.Change, g *target.Group) error {
	if g.Op == sdk.Alter {
		for _, at := range g.At {
			if err := a.t.alter(a.ctx, seg[at].DDL); err != nil {
				return err
			}
		}
		return nil
	}
	if g.Schema == nil {
		return sdk.Faultf(sdk.CodeInternal, "%s without a schema", g.Op)
	}
	p, err := a.w.planOf(a.ctx, a.s, g.Schema)
	if err != nil {
		return err
	}
	switch g.Op {
	case sdk.Upsert, sdk.Append:
		if (g.Op == sdk.Append) != (len(p.key) == 0) {
			return sdk.Faultf(sdk.CodeInternal, "%s of rows of table %s with %d key columns", g.Op, p.table, len(p.key))
		}
		return a.upserts(p, seg, g)
	case sdk.Remove:
		return a.removes(p, seg, g.At)
	case sdk.Patch, sdk.Rekey:
		return a.patches(p, seg, g.At)
	case sdk.Truncate:
		return a.exec("DELETE FROM " + p.table)
	case sdk.Reconcile:
		for _, at := range g.At {
			if err := a.reconcile(p, &seg[at]); err != nil {
				return err
			}
		}
		return nil
	case sdk.MatchPatch, sdk.MatchRemove:
		for _, at := range g.At {
			if err := a.match(p, &seg[at]); err != nil {
				if err := a.refuse(&seg[at], int(at), err); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return sdk.Faultf(sdk.CodeInternal, "%s of a row of %s: no such operation here", g.Op, g.Schema.Name())
}

func (a *applier) exec(text string) error {
	a.w.cfg.Stats.Statements.Add(1)
	return a.s.exec(a.ctx, text)
}

// refuse notes that a change cannot be written, or returns err where it is not
// about the change.
func (a *applier) refuse(c *sdk.Change, at int, err error) error {
	f := recordFault(target.Row(c), err)
	if f == nil || !target.OfRecord(f.Code) {
		return err
	}
	a.bad = append(a.bad, sdk.RecordError{Index: a.base + at, Err: f})
	return nil
}

// upserts writes whole rows, as many in a statement as fit into a packet.
func (a *applier) upserts(p *plan, seg []sdk.Change, g *target.Group) error {
	if g.Read && a.bulk(p, len(g.At)) {
		done, err := a.load(p, seg, g.At)
		if done || err != nil {
			return err
		}
	}
	var st *statement
	var other statement
	a.mask = a.mask[:0]
	flush := func() error {
		if len(a.rows) == 0 {
			return nil
		}
		err := a.send(st, seg)
		a.rows, a.text = a.rows[:0], a.text[:0]
		return err
	}
	a.rows, a.text = a.rows[:0], a.text[:0]
	for _, at := range g.At {
		c := &seg[at]
		vals, err := c.After.Values(a.after)
		if err != nil {
			return err
		}
		a.after = vals
		next := &p.full
		if !c.After.Complete() {
			a.maskB = p.mask(a.maskB[:0], vals)
			if st != &other || string(a.maskB) != string(a.mask) {
				if err := flush(); err != nil {
					return err
				}
				a.mask = append(a.mask[:0], a.maskB...)
				other = p.insert(a.mask)
			}
			next = &other
		}
		if st != next || len(a.rows) >= packetRows || len(a.text) >= packetText-4096 {
			if err := flush(); err != nil {
				return err
			}
			st = next
			a.text = append(a.text, st.head...)
		}
		from := len(a.text)
		if from > len(st.head) {
			a.text = append(a.text, ',')
		}
		if a.text, err = a.appendRow(a.text, p, vals); err != nil {
			a.text = a.text[:from]
			if err := a.refuse(c, int(at), err); err != nil {
				return err
			}
			continue
		}
		a.rows = append(a.rows, at)
	}
	return flush()
}

func (a *applier) appendRow(b []byte, p *plan, vals []batch.Value) ([]byte, error) {
	b = append(b, '(')
	first := true
	var err error
	for i := range vals {
		v := &vals[i]
		if p.columns[i].name == "" || v.State == batch.Absent || v.State == batch.Unchanged {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		if b, err = a.appendValue(b, p, i, v); err != nil {
			return b, err
		}
	}
	return append(b, ')'), nil
}

// send runs the INSERT whose rows stand in text. Where the server refuses it, each
// row is tried alone, to know which it was.
func (a *applier) send(st *statement, seg []sdk.Change) error {
	a.text = append(a.text, st.tail...)
	err := a.exec(view(a.text))
	if err == nil {
		return nil
	}
	if recordFault("", err) == nil || lost(err) {
		return err
	}
	if n := number(err); n == erDupEntry || n == erSubqueryRows {
		made, rerr := a.makeRoom(seg[a.rows[0]].Schema)
		if rerr != nil {
			return rerr
		}
		if made {
			if err = a.exec(view(a.text)); err == nil {
				return nil
			}
			if recordFault("", err) == nil || lost(err) {
				return err
			}
		}
	}
	for _, at := range a.rows {
		c := &seg[at]
		p, perr := a.w.planOf(a.ctx, a.s, c.Schema)
		if perr != nil {
			return perr
		}
		vals, verr := c.After.Values(a.after)
		if verr != nil {
			return verr
		}
		a.after = vals
		b := append([]byte{}, st.head...)
		if b, verr = a.appendRow(b, p, vals); verr != nil {
			return verr
		}
		if err := a.exec(view(append(b, st.tail...))); err != nil {
			if err := a.refuse(c, int(at), err); err != nil {
				return err
			}
		}
	}
	if len(a.bad) > 0 {
		return nil
	}
	// Alone, each of them is right.
	return err
}

// removes deletes rows by their keys.
func (a *applier) removes(p *plan, seg []sdk.Change, at []int32) error {
	head := "DELETE FROM " + p.table + " WHERE "
	for len(at) > 0 {
		a.text = append(a.text[:0], head...)
		n, some := 0, false
		one := len(p.key) == 1
		if one {
			a.text = append(append(a.text, p.columns[p.key[0]].name...), " IN ("...)
		}
		for ; n < len(at) && len(a.text) < packetText-4096 && (n < packetKeys || one && n < packetRows); n++ {
			c, from := &seg[at[n]], len(a.text)
			switch {
			case !some:
			case one:
				a.text = append(a.text, ',')
			default:
				a.text = append(a.text, " OR "...)
			}
			var err error
			if a.text, err = a.appendKey(a.text, p, c.Key, c.Before, !one); err != nil {
				a.text = a.text[:from]
				if err := a.refuse(c, int(at[n]), err); err != nil {
					return err
				}
				continue
			}
			some = true
		}
		if !some {
			at = at[n:]
			continue
		}
		if one {
			a.text = append(a.text, ')')
		}
		if err := a.exec(view(a.text)); err != nil {
			if recordFault("", err) == nil {
				return err
			}
			if err := a.removeEach(p, seg, at[:n]); err != nil {
				return err
			}
		}
		at = at[n:]
	}
	return nil
}

func (a *applier) removeEach(p *plan, seg []sdk.Change, at []int32) error {
	for _, i := range at {
		c := &seg[i]
		b, err := a.appendKey([]byte("DELETE FROM "+p.table+" WHERE "), p, c.Key, c.Before, true)
		if err == nil {
			err = a.exec(view(b))
		}
		if err != nil {
			if err := a.refuse(c, int(i), err); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeRoom deletes rows of the table that this transaction writes anew later on:
// sources that check keys at the end of a statement or a transaction exchange
// unique values directly. It reports whether there were any.
func (a *applier) makeRoom(s *batch.Schema) (bool, error) {
	p, err := a.w.planOf(a.ctx, a.s, s)
	if err != nil || p.referenced || len(p.key) == 0 {
		return false, err
	}
	var all []byte
	for _, seg := range a.later {
		for i := range seg {
			c := &seg[i]
			if c.Op != sdk.Upsert || c.Schema != s || !c.After.Complete() {
				continue
			}
			if len(all) > 0 {
				all = append(all, " OR "...)
			}
			if all, err = a.appendKey(all, p, c.Key, batch.Image{}, true); err != nil {
				return false, err
			}
		}
	}
	if len(all) == 0 {
		return false, nil
	}
	return true, a.exec("DELETE FROM " + p.table + " WHERE " + string(all))
}
