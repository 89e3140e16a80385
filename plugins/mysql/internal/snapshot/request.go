package snapshot

import (
	"context"
	"errors"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/schema"
	"github.com/datalink-go/datalink/sdk"
)

// request is what the user asked for and waits to be stored.
type request struct {
	end  []byte // position after the items that hold it; nil = not in the stream yet
	done chan struct{}
}

// Request asks for the tables of the server that match, beside the stream. It
// returns their names once that is stored with the progress, so that a restart
// cannot lose it; asking again for what is under way changes nothing.
func (w *Weaver) Request(ctx context.Context, match func(database, table string) bool) ([]string, error) {
	s, err := dial(ctx, w.src, &w.cfg)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	names, err := s.tables(ctx, func(db, tab string) bool { return match(db, tab) && w.src.Wants(db, tab) })
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, sdk.Faultf(sdk.CodeUnknownTable, "no table of the server that the task reads is meant").Suggest("name tables as database.table; the reader's option tables says which are read")
	}
	parents, err := s.parents(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.parents = parents
	var out []string
	for _, n := range names {
		out = append(out, n.String())
		if t := w.tables[n]; t == nil || t.phase == Done {
			t = newTable(n)
			t.asked = true
			w.put(t)
		}
	}
	q := w.ask()
	w.mu.Unlock()
	return out, w.stored(ctx, q)
}

// ask notes a request. Called with mu held.
func (w *Weaver) ask() *request {
	q := &request{done: make(chan struct{})}
	w.requests = append(w.requests, q)
	w.active.Store(true)
	w.cond.Broadcast()
	w.signal()
	return q
}

// stored waits until a request is stored with the progress.
func (w *Weaver) stored(ctx context.Context, q *request) error {
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err()
		}
		return sdk.Faultf(sdk.CodeDeadline, "the request is under way, but no writer has stored it yet").
			Suggest("ask again: what is under way is not begun anew")
	}
}

// Durable says what the writers have stored: passed reports whether that is at or
// after a position.
func (w *Weaver) Durable(passed func(position []byte) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.requests[:0]
	for _, q := range w.requests {
		if q.end != nil && passed(q.end) {
			close(q.done)
			continue
		}
		rest = append(rest, q)
	}
	w.requests = rest
}

// Pause stops reading after the chunks that are being read, or goes on. It returns
// once that is stored with the progress, so that a restart keeps it.
func (w *Weaver) Pause(ctx context.Context, on bool) error {
	w.mu.Lock()
	if w.paused != on {
		w.paused, w.pauseStated = on, false
		w.started, w.handed = time.Now(), 0
	}
	q := w.ask()
	w.mu.Unlock()
	return w.stored(ctx, q)
}

// Status is how far the snapshots are.
type Status struct {
	Tables        []TableStatus
	Paused        bool
	RowsPerSecond float64 // handed over, since reading began or went on
}

// TableStatus is how far the snapshot of a table is. Estimate is what the server
// believes the table has.
type TableStatus struct {
	Table    schema.Name
	Phase    string
	Rows     uint64
	Estimate uint64
}

// Percent is the part that is done, by the server's estimate; 100 only at the end.
func (t *TableStatus) Percent() float64 {
	switch {
	case t.Phase == Done:
		return 100
	case t.Estimate == 0:
		return 0
	}
	return min(99, 100*float64(t.Rows)/float64(t.Estimate))
}

// Status returns how far the snapshots are.
func (w *Weaver) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Status{Paused: w.paused}
	for _, t := range w.order {
		if !t.gone {
			s.Tables = append(s.Tables, TableStatus{Table: t.name, Phase: t.phase, Rows: t.rows, Estimate: t.estimate})
		}
	}
	if d := time.Since(w.started).Seconds(); d > 0.01 {
		s.RowsPerSecond = float64(w.handed) / d
	}
	return s
}
