package pipeline

import (
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// hunt looks for the record on which a connector dies. The first death sends
// what was in flight again, a transaction at a time as far as blocks allow; each
// further one halves what is sent at once, committed by ordinal, until a single
// record is left that kills it three times in a row.
type hunt struct {
	deaths int
	limit  int   // events sent at once; 0 = whole blocks
	entry  int64 // the block under suspicion
	at     spot  // the record under suspicion
	single int   // deaths in a row on it
}

// on reports whether a hunt is under way.
func (h *hunt) on() bool { return h.deaths > 0 }

// holds reports whether the next request must wait for those in flight. While
// whole blocks are sent, one that ends inside a transaction needs its successor.
func (h *hunt) holds(inflight []*sent) bool {
	if h.deaths == 0 {
		return false
	}
	txs := inflight[len(inflight)-1].entry.block.Txs
	return h.limit > 0 || len(txs) == 0 || txs[len(txs)-1].Ends
}

// passed notes that a request became durable: the hunt is over once it ends
// the suspect or a later block.
func (h *hunt) passed(s *sent) {
	if h.deaths > 0 && s.whole && s.entry.index >= h.entry {
		*h = hunt{}
	}
}

// suspect charges what is in flight with a death of the sink. It returns an error
// when the record that kills it is found and policy says stop.
func (w *writer) suspect(cause error) error {
	h := &w.hunt
	if len(w.inflight) == 0 {
		return nil // it died idle
	}
	first := w.inflight[0]
	h.deaths++
	switch n := first.to - first.from; {
	case h.deaths == 1:
		h.entry = w.inflight[len(w.inflight)-1].entry.index
	case h.limit == 0:
		h.limit = max(1, n/2)
	case h.limit > 1:
		h.limit /= 2
	default:
		at := spot{first.entry.index, first.from}
		if at != h.at {
			h.at, h.single = at, 0
		}
		if h.single++; n <= 1 && h.single >= 3 {
			return w.poison(first, cause)
		}
	}
	return nil
}

func (w *writer) poison(s *sent, cause error) error {
	var ev batch.Event
	if err := w.build.open(w.maps, s.entry); err != nil {
		return err
	}
	if err := w.build.blk.Event(s.from, &ev); err != nil {
		return err
	}
	f := sdk.Faultf(sdk.CodePoison, "the connector dies on it: %v", cause)
	at := spot{s.entry.index, s.from}
	if w.cfg.OnError != DeadLetterOnError || !ev.Kind.IsRow() {
		return fmt.Errorf("writer %s: %w", w.cfg.Name, w.name(s.entry, at, f))
	}
	w.build.failed[at] = *f
	w.hunt = hunt{}
	return nil
}
