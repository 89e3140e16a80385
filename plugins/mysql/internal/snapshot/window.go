package snapshot

import (
	"sync/atomic"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk/batch"
)

// table is a table whose snapshot is wanted. What is not marked otherwise belongs
// to Weaver.mu.
type table struct {
	name     schema.Name
	phase    string
	key      string // identity of the key
	schema   *batch.Schema
	spans    []*span
	planned  bool
	planning bool // by a worker
	begun    bool // the first piece was handed over: others may follow
	exact    bool // only keys that were held back are left to be read
	whole    bool // it has no key
	rows     uint64
	estimate uint64
	failures int
	asked    bool // by the user, while the task runs
	gone     bool // the server no longer has it
	stated   bool // its state is in the stream as it is

	// Of the reader's goroutine.
	noted   map[string]uint64 // keys that the stream changed, with a number that rises
	windows []*window
	opened  bool                // a window was
	touched map[string]struct{} // keys of updates that were held back
	changes uint64              // row events of the table, and what they were counted at last
}

func newTable(n schema.Name) *table {
	return &table{name: n, phase: Pending, noted: map[string]uint64{}, touched: map[string]struct{}{}}
}

// span is a part of a table that one worker at a time reads in order.
type span struct {
	table *table
	after *mark // what was handed over; nil = nothing
	read  *mark // what was read
	to    *mark // its end; nil = that of the table
	ended bool  // it was read to its end
	done  bool  // and handed over
	busy  bool  // a worker has it
	lost  bool  // pieces of it became void after they were read
}

// window is one use of a consistent snapshot: what is noted from its opening on is
// left out of its pieces.
type window struct {
	table  *table
	span   *span
	keys   [][]byte // exact windows: the keys that are read
	cur    Place
	view   view
	since  uint64 // number of the last change before it
	before uint64 // changes of the table when it opened
	low    string // position at which it opened
	opened chan struct{}
	void   atomic.Bool

	// Under Weaver.mu.
	known   bool // view is set
	closed  bool // no more pieces will come
	pending int  // pieces that wait to be handed over
	settled bool // the stream stands at the place of the snapshot
}

// hold reports whether the stream must stop at the place of the snapshot.
func (v *window) hold() bool { return v.table.whole || v.table.exact }

// maxNoted bounds the keys that are noted of a table while windows are open.
const maxNoted = 200_000

// note remembers that the stream changed a key.
func (t *table) note(key []byte, number uint64) {
	if len(t.windows) > 0 {
		t.noted[string(key)] = number
	}
}

// changed reports whether the stream changed a key since the window opened.
func (v *window) changed(key []byte) bool {
	if len(v.table.noted) == 0 {
		return false
	}
	n, ok := v.table.noted[string(key)]
	return ok && n > v.since
}

// kept lists the keys that were changed since the window opened.
func (v *window) kept() [][]byte {
	var out [][]byte
	for k, n := range v.table.noted {
		if n > v.since {
			out = append(out, []byte(k))
		}
	}
	return out
}

// leave ends a window.
func (t *table) leave(v *window) {
	for i := range t.windows {
		if t.windows[i] == v {
			t.windows = append(t.windows[:i], t.windows[i+1:]...)
			break
		}
	}
	if len(t.windows) == 0 {
		clear(t.noted)
		return
	}
	if len(t.noted) < 4096 {
		return
	}
	least := t.windows[0].since
	for _, o := range t.windows {
		least = min(least, o.since)
	}
	for k, n := range t.noted {
		if n <= least {
			delete(t.noted, k)
		}
	}
}

// cancel makes all windows of the table void.
func (t *table) cancel() {
	for _, v := range t.windows {
		v.void.Store(true)
	}
}
