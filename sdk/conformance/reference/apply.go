package reference

import (
	"context"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Apply writes the changes, those of a segment in any order.
func (t *tx) Apply(_ context.Context, ch *sdk.Changes) ([]sdk.RecordError, error) {
	d := t.w.db
	if err := d.hook("apply", t.lanes); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.done || !t.fenced {
		return nil, sdk.Faultf(sdk.CodeInternal, "changes for a transaction that was not fenced or has ended")
	}
	var bad []sdk.RecordError
	base := 0
	for _, seg := range ch.Segments {
		order := make([]int, len(seg))
		for i := range order {
			order[i] = i
		}
		if d.Shuffle != nil {
			d.Shuffle.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, i := range order {
			err := t.change(&seg[i])
			switch f := sdk.AsFault(err); {
			case f == nil:
			case f.Code == sdk.CodeConflict || f.Code == sdk.CodeMissingRow || f.Code == sdk.CodeUnfit:
				bad = append(bad, sdk.RecordError{Index: base + i, Err: f})
			default:
				return nil, err
			}
		}
		base += len(seg)
		if len(bad) > 0 {
			return bad, nil
		}
	}
	return nil, nil
}

func (t *tx) change(c *sdk.Change) error {
	if c.Op == sdk.Alter {
		t.ddl = append(t.ddl, c.DDL.Statement)
		return nil
	}
	tab := t.w.db.tables[c.Schema.Name()]
	if tab == nil {
		return sdk.Faultf(sdk.CodeInternal, "%s of a row of %s, which was not prepared", c.Op, c.Schema.Name())
	}
	switch c.Op {
	case sdk.Truncate:
		for k := range t.all(tab) {
			t.put(tab, k, nil)
		}
		t.lists[tab] = []*row{}
		return nil
	case sdk.Reconcile:
		for k := range t.all(tab) {
			in := (len(c.Range.Lo) == 0 || k > string(c.Range.Lo)) && (len(c.Range.Hi) == 0 || k <= string(c.Range.Hi))
			if in && !slices.ContainsFunc(c.Seen, func(s []byte) bool { return string(s) == k }) {
				t.put(tab, k, nil)
			}
		}
		return nil
	case sdk.Append, sdk.MatchPatch, sdk.MatchRemove:
		return t.keyless(tab, c)
	}
	if err := t.lock("row\x00" + tab.name + "\x00" + string(c.Key)); err != nil {
		return err
	}
	old := t.get(tab, string(c.Key))
	switch c.Op {
	case sdk.Remove:
		return t.write(tab, old, nil)
	case sdk.Upsert:
		r, err := tab.with(old, c.After, c.Key)
		if err != nil {
			return err
		}
		return t.write(tab, old, r)
	case sdk.Patch:
		if old == nil {
			return sdk.Faultf(sdk.CodeMissingRow, "patch of %s, key %x: no such row", tab.name, c.Key)
		}
		r, err := tab.with(old, c.After, c.Key)
		if err != nil {
			return err
		}
		return t.write(tab, old, r)
	case sdk.Rekey:
		if err := t.lock("row\x00" + tab.name + "\x00" + string(c.OldKey)); err != nil {
			return err
		}
		from := t.get(tab, string(c.OldKey))
		switch {
		case from == nil:
			return sdk.Faultf(sdk.CodeMissingRow, "rekey of %s, key %x: no such row", tab.name, c.OldKey)
		case old != nil:
			return sdk.Faultf(sdk.CodeConflict, "rekey of %s: key %x is taken", tab.name, c.Key)
		}
		r, err := tab.with(from, c.After, c.Key)
		if err != nil {
			return err
		}
		return t.write(tab, from, r)
	}
	return sdk.Faultf(sdk.CodeInternal, "%s of a row of %s: no such operation", c.Op, tab.name)
}

// with returns the row that old becomes by the image.
func (tab *table) with(old *row, im batch.Image, key []byte) (*row, error) {
	cols, err := im.Columns(nil)
	if err != nil {
		return nil, err
	}
	r := &row{key: string(key), cells: make([]cell, len(tab.columns))}
	for i := range r.cells {
		r.cells[i].null = true
	}
	if old != nil {
		copy(r.cells, old.cells)
	}
	for i := range cols {
		at := slices.Index(tab.columns, im.Schema().Columns[i].Name)
		switch cols[i].State {
		case batch.Null:
			r.cells[at] = cell{null: true}
		case batch.Present, batch.Raw:
			r.cells[at] = cell{data: string(cols[i].Bytes)}
		}
	}
	return r, nil
}

func (t *tx) get(tab *table, key string) *row {
	if r, ok := t.rows[tab][key]; ok {
		return r
	}
	return tab.rows[key]
}

func (t *tx) put(tab *table, key string, r *row) {
	if t.rows[tab] == nil {
		t.rows[tab] = map[string]*row{}
	}
	t.rows[tab][key] = r
}

// all returns the rows as the transaction sees them.
func (t *tx) all(tab *table) map[string]*row {
	out := make(map[string]*row, len(tab.rows))
	for k, r := range tab.rows {
		out[k] = r
	}
	for k, r := range t.rows[tab] {
		if r == nil {
			delete(out, k)
		} else {
			out[k] = r
		}
	}
	return out
}

// write puts r in the place of old, either of which may be nil, and checks what
// ties rows to one another.
func (t *tx) write(tab *table, old, r *row) error {
	for _, u := range tab.uniques {
		for _, x := range []*row{old, r} {
			if x == nil {
				continue
			}
			v, ok := tab.value(x, u.columns)
			if !ok {
				continue
			}
			if err := t.lock("value\x00" + tab.name + "\x00" + u.name + "\x00" + v); err != nil {
				return err
			}
			if x != r {
				continue
			}
			for k, o := range t.all(tab) {
				if ov, ok := tab.value(o, u.columns); ok && ov == v && k != r.key && (old == nil || k != old.key) {
					return sdk.Faultf(sdk.CodeConflict, "%s, key %x: unique key %s is taken by key %x", tab.name, r.key, u.name, k)
				}
			}
		}
	}
	if r != nil {
		if err := t.parents(tab, r); err != nil {
			return err
		}
	}
	if old != nil {
		if err := t.children(tab, old, r); err != nil {
			return err
		}
		t.put(tab, old.key, nil)
	}
	if r != nil {
		t.put(tab, r.key, r)
	}
	return nil
}

// parents demands that the rows r refers to are there.
func (t *tx) parents(tab *table, r *row) error {
	for _, f := range tab.fks {
		v, ok := tab.value(r, f.columns)
		ref := t.w.db.tables[f.table]
		if !ok || ref == nil {
			continue
		}
		found := false
		for _, p := range t.all(ref) {
			pv, ok := ref.value(p, ref.places(f.refColumns))
			found = found || ok && pv == v
		}
		if !found && !(ref == tab && selfRefers(tab, r, &f, v)) {
			return sdk.Faultf(sdk.CodeConflict, "%s, key %x: no row of %s that it refers to", tab.name, r.key, f.table)
		}
	}
	return nil
}

func selfRefers(tab *table, r *row, f *foreign, v string) bool {
	pv, ok := tab.value(r, tab.places(f.refColumns))
	return ok && pv == v
}

// children demands that no row refers to what old had and r lacks.
func (t *tx) children(tab *table, old, r *row) error {
	for _, o := range t.w.db.tables {
		for _, f := range o.fks {
			if f.table != tab.name {
				continue
			}
			places := tab.places(f.refColumns)
			v, ok := tab.value(old, places)
			if !ok {
				continue
			}
			if r != nil {
				if now, ok := tab.value(r, places); ok && now == v {
					continue
				}
			}
			for k, c := range t.all(o) {
				if cv, ok := o.value(c, f.columns); ok && cv == v && !(o == tab && k == old.key) {
					return sdk.Faultf(sdk.CodeConflict, "%s, key %x: row %x of %s refers to it", tab.name, old.key, k, o.name)
				}
			}
		}
	}
	return nil
}

func (tab *table) places(names []string) []int {
	out := make([]int, len(names))
	for i, n := range names {
		out[i] = slices.Index(tab.columns, n)
	}
	return out
}

func (t *tx) keyless(tab *table, c *sdk.Change) error {
	if err := t.lock("table\x00" + tab.name); err != nil {
		return err
	}
	list, ok := t.lists[tab]
	if !ok {
		list = slices.Clone(tab.list)
	}
	defer func() { t.lists[tab] = list }()
	if c.Op == sdk.Append {
		r, err := tab.with(nil, c.After, nil)
		if err != nil {
			return err
		}
		list = append(list, r)
		return nil
	}
	want, err := tab.with(nil, c.Before, nil)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(r *row) bool { return strings.Compare(tab.text(r), tab.text(want)) == 0 })
	if at < 0 {
		return sdk.Faultf(sdk.CodeMissingRow, "%s of %s: no row equal to the before image", c.Op, tab.name)
	}
	if c.Op == sdk.MatchRemove {
		list = slices.Delete(list, at, at+1)
		return nil
	}
	r, err := tab.with(list[at], c.After, nil)
	if err != nil {
		return err
	}
	list[at] = r
	return nil
}
