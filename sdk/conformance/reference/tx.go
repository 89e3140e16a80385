package reference

import (
	"context"
	"maps"
	"slices"

	"github.com/datalink-go/datalink/sdk"
)

// tx is a target transaction: what it has written, over what is committed.
type tx struct {
	w      *Transactional
	lanes  []int32
	next   []sdk.Next
	fenced bool
	done   bool

	rows   map[*table]map[string]*row // nil row = deleted
	lists  map[*table][]*row          // keyless tables, whole
	ddl    []string
	locked []string
}

// Begin opens a transaction.
func (w *Transactional) Begin(ctx context.Context, lanes []int32) (sdk.Tx, error) {
	if err := w.db.hook("begin", lanes); err != nil {
		return nil, err
	}
	if !slices.IsSorted(lanes) || len(lanes) == 0 {
		return nil, sdk.Faultf(sdk.CodeInternal, "begin: lanes %v, expected some in ascending order", lanes)
	}
	return &tx{w: w, lanes: lanes, rows: map[*table]map[string]*row{}, lists: map[*table][]*row{}}, ctx.Err()
}

func (t *tx) lock(name string) error {
	switch by := t.w.db.locks[name]; by {
	case t:
	case nil:
		t.w.db.locks[name] = t
		t.locked = append(t.locked, name)
	default:
		return sdk.Faultf(sdk.CodeUnavailable, "deadlock: %q is locked by another transaction", name).Retry()
	}
	return nil
}

// Fence checks and locks the lanes' rows.
func (t *tx) Fence(_ context.Context, next []sdk.Next) error {
	if err := t.w.db.hook("fence", t.lanes); err != nil {
		return err
	}
	d := t.w.db
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.done || t.fenced || len(next) != len(t.lanes) {
		return sdk.Faultf(sdk.CodeInternal, "fence out of order: fenced %t, ended %t, %d positions for %d lanes", t.fenced, t.done, len(next), len(t.lanes))
	}
	p := d.progress[t.w.name]
	if err := t.w.fenced(p); err != nil {
		d.refused++
		return err
	}
	for i, n := range next {
		if n.Lane != t.lanes[i] {
			return sdk.Faultf(sdk.CodeInternal, "fence: lane %d in the place of lane %d", n.Lane, t.lanes[i])
		}
		if err := t.lock("lane\x00" + t.w.name + string(rune(n.Lane))); err != nil {
			return err
		}
		if have := p.lanes[n.Lane].BatchNo; have+1 != n.BatchNo && !d.FenceOff {
			d.refused++
			if have < n.BatchNo {
				return sdk.ErrTargetWentBack
			}
			return sdk.ErrFenced
		}
	}
	t.fenced, t.next = true, next
	return nil
}

// Commit makes the transaction's writes those of the database.
func (t *tx) Commit(context.Context) error {
	d := t.w.db
	if err := d.hook("commit", t.lanes); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.done || !t.fenced {
		return sdk.Faultf(sdk.CodeUnavailable, "commit: the session is lost").Retry()
	}
	for tab, rows := range t.rows {
		tab = d.tables[tab.name]
		for k, r := range rows {
			if r == nil {
				delete(tab.rows, k)
			} else {
				tab.rows[k] = r
			}
		}
	}
	for tab, list := range t.lists {
		d.tables[tab.name].list = list
	}
	d.ddl = append(d.ddl, t.ddl...)
	p := d.progress[t.w.name].clone()
	for _, n := range t.next {
		p.lanes[n.Lane] = n.Point
		d.history = append(d.history, Committed{n.Lane, n.BatchNo, n.Position})
		for _, s := range n.State {
			s.Value = slices.Clone(s.Value)
			p.state[s.Key] = s
			if s.Deleted {
				delete(p.state, s.Key)
			}
		}
		for _, l := range n.SetAside {
			p.letters[l.Number] = l
		}
		for _, no := range n.Dropped {
			delete(p.letters, no)
		}
	}
	d.progress[t.w.name] = p
	d.commits++
	t.end()
	return d.hook("committed", t.lanes)
}

// Rollback ends the transaction without effect.
func (t *tx) Rollback(context.Context) error {
	t.w.db.mu.Lock()
	defer t.w.db.mu.Unlock()
	t.end()
	return nil
}

func (t *tx) end() {
	t.done = true
	maps.DeleteFunc(t.w.db.locks, func(_ string, by *tx) bool { return by == t })
}
