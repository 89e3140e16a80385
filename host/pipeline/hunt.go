package pipeline

import (
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// hunt looks for the record on which a connector dies. The first death sends
// what was in flight again, one block at a time; each further one halves what is
// sent at once, until a single record is left.
type hunt struct {
	deaths int
	limit  int   // events sent at once; 0 = whole blocks
	entry  int64 // the block under suspicion
}

// on reports whether blocks go one at a time.
func (h *hunt) on() bool { return h.deaths > 0 }

// passed notes that a block became durable: the hunt is over once it is the
// suspect or a later one.
func (h *hunt) passed(s *sent) {
	if h.deaths > 0 && s.entry.index >= h.entry {
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
	switch {
	case h.deaths == 1 || len(w.inflight) > 1:
		h.entry = w.inflight[len(w.inflight)-1].entry.index
		return nil
	case h.limit == 0:
		h.entry = first.entry.index
		h.limit = max(1, (first.to-first.from)/2)
	case h.limit > 1:
		h.limit /= 2
	case first.to-first.from == 1:
		return w.poison(first, cause)
	}
	if first.to-first.from == 1 && h.deaths > 2 {
		return w.poison(first, cause)
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
