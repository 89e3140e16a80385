package snapshot

import (
	"bytes"
	"context"

	"github.com/datalink-go/datalink/sdk"
)

// inquiry waits for the stream to be at or after a place.
type inquiry struct {
	at    *Place // nil = anywhere
	place Place
	bytes []byte
	done  chan struct{}
}

// Here returns where the stream is between two transactions, once it is at or
// after a place.
func (w *Weaver) Here(ctx context.Context, at *Place) (Place, []byte, error) {
	q := &inquiry{at: at, done: make(chan struct{})}
	w.mu.Lock()
	w.inquiries = append(w.inquiries, q)
	w.active.Store(true)
	w.mu.Unlock()
	w.signal()
	select {
	case <-q.done:
		return q.place, q.bytes, nil
	case <-ctx.Done():
		return Place{}, nil, sdk.Faultf(sdk.CodeDeadline, "the stream did not come to the end of the log: %v", ctx.Err()).Retry()
	}
}

// inform answers those who wait for the stream to be here.
func (w *Weaver) inform(here Place) {
	rest := w.inquiries[:0]
	for _, q := range w.inquiries {
		if q.at != nil && !here.reached(*q.at) {
			rest = append(rest, q)
			continue
		}
		q.place, q.bytes = here, bytes.Clone(w.src.Position(0))
		close(q.done)
	}
	w.inquiries = rest
}
