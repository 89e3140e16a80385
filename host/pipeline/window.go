package pipeline

import (
	"fmt"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// entry is one block between reader and writers, after the common stages.
type entry struct {
	index     int64 // place in the round, from 0
	data      []byte
	block     batch.Block
	records   int // events and bytes as the reader sent them: its credit
	bytes     int
	rows      int    // in block
	version   uint64 // of event 0
	first     sdk.Position
	last      sdk.Position
	committed int64
	waiting   int // writers that have not acknowledged it

	// Of entries that did not come from the reader: the block after the mappings, by
	// writer, and who waits for it.
	beside map[string][]byte
	done   chan error
	lost   bool // a writer was detached before it acknowledged the entry
}

// window holds the entries of a round that some writer still needs. Entries are
// added by the feed and read by all writers; they do not change once added, but
// for waiting, which the window guards.
type window struct {
	mu      sync.Mutex
	entries []*entry // entries[0].index == base
	base    int64
	next    int64
	records int
	bytes   int
	limit   Window
	writers int
	ended   bool // no more entries will come
	// passed counts the entries that left, for the reader's durable position.
	durable sdk.Position
	freed   func(records, bytes int)
	signals map[chan struct{}]struct{}
	full    time.Time // since when the window is full; zero = it is not
}

func newWindow(limit Window, writers int, freed func(records, bytes int)) *window {
	return &window{limit: limit, writers: writers, freed: freed, signals: map[chan struct{}]struct{}{}}
}

// subscribe returns a channel that gets a token whenever the window changes.
func (w *window) subscribe() chan struct{} {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signals[c] = struct{}{}
	return c
}

func (w *window) broadcast() {
	for c := range w.signals {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (w *window) add(e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.index, e.waiting = w.next, w.writers
	w.next++
	w.entries = append(w.entries, e)
	w.records += e.records
	w.bytes += e.bytes
	if w.full.IsZero() && (w.records >= w.limit.Records || w.bytes >= w.limit.Bytes) {
		w.full = time.Now()
	}
	w.release()
	w.broadcast()
}

// addBeside is add for entries that did not come from the reader. False: no entry
// may follow those that are there.
func (w *window) addBeside(e *entry) bool {
	w.mu.Lock()
	ended := w.ended
	w.mu.Unlock()
	if !ended {
		w.add(e)
	}
	return !ended
}

func (w *window) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.broadcast()
}

// get returns the entry with that index, nil when it is not there yet. Ended
// says that it will never be.
func (w *window) get(index int64) (e *entry, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if index < w.base {
		panic(fmt.Sprintf("pipeline: entry %d has left the window, which begins at %d", index, w.base))
	}
	if index < w.next {
		return w.entries[index-w.base], false
	}
	return nil, w.ended
}

// ack says that one writer holds all entries before upto, of which it had
// acknowledged those before from.
func (w *window) ack(from, upto int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := from; i < upto; i++ {
		w.entries[i-w.base].waiting--
	}
	w.release()
	w.broadcast()
}

// detach forgets a writer that has acknowledged the entries before from.
func (w *window) detach(from int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writers--
	for i := max(from, w.base); i < w.next; i++ {
		w.entries[i-w.base].waiting--
		w.entries[i-w.base].lost = true
	}
	w.release()
	w.broadcast()
}

func (w *window) release() {
	records, bytes, n := 0, 0, 0
	for _, e := range w.entries {
		if e.waiting > 0 {
			break
		}
		records += e.records
		bytes += e.bytes
		w.durable = e.last
		n++
		if e.done == nil {
			continue
		}
		if e.lost {
			e.done <- ErrNotWritten
		} else {
			e.done <- nil
		}
	}
	if n == 0 {
		return
	}
	clear(w.entries[:n])
	w.entries = w.entries[n:]
	w.base += int64(n)
	w.records -= records
	w.bytes -= bytes
	if w.records < w.limit.Records && w.bytes < w.limit.Bytes {
		w.full = time.Time{}
	}
	w.freed(records, bytes)
}

// fullFor returns how long the window has been full.
func (w *window) fullFor() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full.IsZero() {
		return 0
	}
	return time.Since(w.full)
}

// stored returns the position up to which every writer has everything.
func (w *window) stored() sdk.Position {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.durable
}

// place is a place in the window: everything before transaction tx of the entry
// is done, and of that transaction the changes with ordinals below ordinal.
type place struct {
	entry   int64
	tx      int
	ordinal uint64
}

func (p place) before(q place) bool {
	if p.entry != q.entry {
		return p.entry < q.entry
	}
	if p.tx != q.tx {
		return p.tx < q.tx
	}
	return p.ordinal < q.ordinal
}

// locate finds the place of a position by its bytes: after a transaction that
// ends with it, or inside one that starts with it. The last match wins, since
// empty transactions may share a position with their predecessor.
func (w *window) locate(p sdk.Position) (place, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.entries) - 1; i >= 0; i-- {
		e := w.entries[i]
		if e.done != nil {
			continue // it moves no position
		}
		if at, ok := locateIn(e, p); ok {
			return w.besides(p, at), true
		}
		if i == 0 && samePosition(p, e.first) {
			return place{entry: e.index}, true
		}
	}
	return place{}, false
}

// besides moves a place before the first entry that was added beside the stream at
// the same position: that says nothing about whether the target has it.
func (w *window) besides(p sdk.Position, at place) place {
	for _, e := range w.entries {
		if e.index >= at.entry {
			break
		}
		if e.done != nil && samePosition(p, e.last) {
			return place{entry: e.index}
		}
	}
	return at
}

func locateIn(e *entry, p sdk.Position) (place, bool) {
	src := string(p.Source)
	for t := len(e.block.Txs) - 1; t >= 0; t-- {
		tx := &e.block.Txs[t]
		switch {
		case p.Ordinal == 0 && tx.Ends && len(tx.End) > 0 && string(tx.End) == src:
			return place{e.index, t + 1, 0}, true
		case p.Ordinal > tx.Ordinal && string(startOf(e, t)) == src:
			return place{e.index, t, p.Ordinal}, true
		}
	}
	return place{}, false
}

// startOf returns the position before the t-th transaction of an entry, empty
// where the source gave none.
func startOf(e *entry, t int) []byte {
	tx := &e.block.Txs[t]
	switch {
	case len(tx.Start) > 0:
		return tx.Start
	case t > 0:
		return e.block.Txs[t-1].End
	default:
		return e.first.Source
	}
}

func samePosition(a, b sdk.Position) bool {
	return a.Format == b.Format && a.Version == b.Version && a.Ordinal == b.Ordinal && string(a.Source) == string(b.Source)
}

// others reports whether writers beside the one that asks are attached.
func (w *window) others() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writers > 1
}

// last returns the index of the newest entry, -1 before the first.
func (w *window) last() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next - 1
}

// tail returns the index of the entry from which on nothing moves a position: the
// last transaction has not ended, or ends at a place without one. It is one past
// the newest entry where the last transaction ends at a position.
func (w *window) tail() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.next
	for i := len(w.entries) - 1; i >= 0; i-- {
		txs := w.entries[i].block.Txs
		if n := len(txs); n > 0 {
			last := &txs[n-1]
			if last.Ends && len(last.End) > 0 {
				return at
			}
			at = w.entries[i].index
			if last.Begins && !last.Ends {
				return at
			}
		}
	}
	return at
}
