package delivery

import (
	"bytes"

	"github.com/datalink-go/datalink/sdk/batch"
)

// track follows the rows that changes of key move within a transaction, covered
// changes included. It reports whether the event takes away a row in whose place
// another row was moved before: sources that check keys at commit allow that, as
// in a swap. The row that stands there now stays. What tells is the before image,
// which is not that row.
func (d *dispatcher) track(ev *batch.Event) (stays bool) {
	if len(ev.OldKey) == 0 && len(d.moved) == 0 || !ev.Kind.IsRow() || len(ev.Key) == 0 {
		return false
	}
	name := ev.Schema.Name() + "\x00"
	gone := ev.OldKey
	if ev.Kind == batch.Delete {
		gone = ev.Key
	}
	if len(gone) > 0 {
		k := name + string(gone)
		if now, ok := d.moved[k]; ok {
			if ev.Before.Complete() && !bytes.Equal(now, ev.Before.Data()) {
				stays = true
			} else {
				delete(d.moved, k)
			}
		}
	}
	if ev.Kind == batch.Delete {
		return stays
	}
	k := name + string(ev.Key)
	_, moved := d.moved[k]
	switch {
	case ev.After.Complete() && (moved || len(ev.OldKey) > 0):
		if d.moved == nil {
			d.moved = map[string][]byte{}
		}
		d.moved[k] = bytes.Clone(ev.After.Data())
	case moved:
		delete(d.moved, k) // what the row is now is not known
	}
	return stays
}
