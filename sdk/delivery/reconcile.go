package delivery

import (
	"bytes"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// see collects the keys of snapshot rows, and of what changes beside them, for
// the range that ends them.
func (d *dispatcher) see(ev *batch.Event, p *plan) {
	t := p.table
	if t.read = t.read || ev.Kind == batch.Read; d.run.cfg.Switches.WatchOff && !t.read {
		return
	}
	if len(ev.Key) == 0 || ev.Kind == batch.Delete {
		return
	}
	if len(t.seen) >= d.run.cfg.Seen {
		t.over = true
		return
	}
	t.seen = append(t.seen, bytes.Clone(ev.Key))
}

// reconcile decides which keys of the range in x stay at the target. What came
// through transforms counts where all of the range did; else what the reader says
// the range's rows are. It reports false where nothing is to be done now.
func (d *dispatcher) reconcile(x *item, p *plan) (bool, error) {
	t := p.table
	told, over := t.seen, t.over
	seen := told
	t.seen, t.read, t.over = nil, false, false
	r, err := x.ev.KeyRange()
	if err != nil {
		return false, err
	}
	switch {
	case r.Keys != nil && (over || d.partial):
		if seen = copies(nil, r.Keys); t.joining && !over {
			seen = append(seen, told...)
		}
		t.joining = t.joining && !over // changes between ranges may be missing
	case over:
		return false, sdk.Faultf(sdk.CodeTooLarge, "snapshot range of %s: it has more than %d keys, and rows that only the target has cannot be told", t.name, d.run.cfg.Seen).
			Suggest("read the table in smaller ranges")
	}
	seen = copies(seen, r.Kept)
	x.group = &group{seen: map[string][][]byte{t.name: seen}}
	if !p.constraints.Unordered || len(r.Lo) == 0 && len(r.Hi) == 0 {
		return true, nil
	}
	return d.join(x, t, r, seen)
}

// join adds a range to the one that the whole table is at a target which cannot
// compare its bounds.
func (d *dispatcher) join(x *item, t *table, r *batch.KeyRange, seen [][]byte) (bool, error) {
	if len(r.Lo) == 0 {
		t.joined, t.joining = nil, true
	}
	if t.joining {
		if t.joining = len(t.joined)+len(seen) <= d.run.cfg.Seen; t.joining {
			t.joined = append(t.joined, seen...)
		} else {
			t.joined = nil
		}
	}
	if !r.Last {
		return false, nil
	}
	if !t.joining {
		d.run.cfg.Log.Warn("rows that only the target has stay: the order of the table's key is not that of the source, and its snapshot was too large or was interrupted", "table", t.name)
		return false, nil
	}
	x.group.seen[t.name] = t.joined
	x.group.whole = &batch.KeyRange{Low: bytes.Clone(r.Low), High: bytes.Clone(r.High), Last: true}
	t.joined, t.joining = nil, false
	return true, nil
}

func copies(dst, keys [][]byte) [][]byte {
	for _, k := range keys {
		dst = append(dst, bytes.Clone(k))
	}
	return dst
}
