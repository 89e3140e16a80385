package snapshot

import (
	"context"
	"errors"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
)

// job is what a worker does next: list the server's tables, plan one of them, read
// a span, or read the keys of a table that were held back.
type job struct {
	list  bool
	table *table
	span  *span // nil: plan the table, or read keys
	keys  bool
}

// tries is how often a table may fail in a row before the stream ends with it.
const tries = 12

// worker reads until ctx ends. It has a connection while it has something to do.
func (w *Weaver) worker(ctx context.Context) {
	var s *session
	drop := func() {
		if s != nil {
			_ = s.Close()
			s = nil
		}
	}
	defer drop()
	for {
		j := w.job(ctx, false)
		if j == nil {
			drop()
			if j = w.job(ctx, true); j == nil {
				return
			}
		}
		err := w.do(ctx, &s, j)
		if err != nil {
			drop()
		}
		if w.done(ctx, j, err) {
			return
		}
	}
}

func (w *Weaver) do(ctx context.Context, s **session, j *job) error {
	if *s == nil {
		var err error
		if *s, err = dial(ctx, w.src, &w.cfg); err != nil {
			return err
		}
	}
	switch {
	case j.list:
		return w.list(ctx, *s)
	case j.keys:
		return w.readHeld(ctx, *s, j.table)
	case j.span == nil:
		return w.plan(ctx, *s, j.table)
	}
	return w.read(ctx, *s, j.table, j.span)
}

// job picks what comes next. Without wait it returns nil where there is nothing.
func (w *Weaver) job(ctx context.Context, wait bool) *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ctx.Err() == nil {
		if w.fault == nil && !w.paused {
			if j := w.next(); j != nil {
				w.busy++
				return j
			}
		}
		if !wait {
			return nil
		}
		w.cond.Wait()
	}
	return nil
}

func (w *Weaver) next() *job {
	if w.listing {
		if w.exclude {
			return nil
		}
		w.exclude = true
		return &job{list: true}
	}
	for _, strict := range []bool{true, false} {
		if !strict && w.busy > 0 {
			break // the tables that others refer to are under way
		}
		for _, t := range w.order {
			if t.phase == Done || t.planning || strict && w.waits(t) {
				continue
			}
			if !t.planned {
				t.planning = true
				return &job{table: t}
			}
			all := true
			for i, sp := range t.spans {
				all = all && sp.done
				if sp.lost && !sp.busy {
					sp.again()
				}
				if sp.busy || sp.ended || i > 0 && !t.begun || t.whole && w.exclude {
					continue
				}
				sp.busy = true
				w.exclude = w.exclude || t.whole
				return &job{table: t, span: sp}
			}
			if all && t.exact && !w.exclude {
				w.exclude = true
				return &job{table: t, keys: true}
			}
		}
	}
	return nil
}

// waits reports whether a table that t refers to is not done.
func (w *Weaver) waits(t *table) bool {
	for _, n := range w.parents[t.name] {
		if p := w.tables[n]; p != nil && p.phase != Done {
			return true
		}
	}
	return false
}

// done takes the job back and decides about its error. It reports whether the
// worker ends.
func (w *Weaver) done(ctx context.Context, j *job, err error) bool {
	w.mu.Lock()
	w.busy--
	t := j.table
	switch {
	case j.list:
		w.exclude = false
	case j.keys:
		w.exclude = false
	case j.span == nil:
		t.planning = false
	default:
		j.span.busy = false
		w.exclude = w.exclude && !t.whole
	}
	failures := 0
	if err != nil && ctx.Err() == nil && !errors.Is(err, errVoid) {
		if t != nil {
			t.failures++
			failures = t.failures
		} else {
			w.failures++
			failures = w.failures
		}
		if !passing(err) || failures >= tries {
			w.fault = named(t, err)
		}
	} else if err == nil {
		w.failures = 0
		if t != nil {
			t.failures = 0
		}
	}
	w.cond.Broadcast()
	w.mu.Unlock()
	w.signal()
	if ctx.Err() != nil {
		return true
	}
	if failures > 0 {
		w.log.Warn("reading for the snapshot is tried again", "tries", failures, "cause", err)
		select {
		case <-ctx.Done():
			return true
		case <-time.After(min(50*time.Millisecond<<failures, 5*time.Second)):
		}
	}
	return false
}

// passing reports whether an error may pass by itself.
func passing(err error) bool {
	switch server.Code(err) {
	case 0:
	case errChanged, 1205, 1213, 1053, 1040, 1203, 1226, 1317, errTimeout, errTimeoutMariaDB:
		return true
	default:
		return false
	}
	var f *sdk.Fault
	if errors.As(err, &f) {
		return f.Retryable || f.Code == sdk.CodeUnavailable
	}
	return true // of the connection
}

func named(t *table, err error) error {
	what := "tables of the server"
	if t != nil {
		what = "table " + t.name.String()
	}
	var f *sdk.Fault
	if errors.As(err, &f) {
		c := *f
		c.Message = "snapshot of " + what + ": " + f.Message
		return &c
	}
	switch server.Code(err) {
	case 1044, 1045, 1142, 1143, 1227, 1370:
		return sdk.Faultf(sdk.CodeUnauthorized, "snapshot of %s: %v", what, err).Suggest("grant SELECT on the tables, and REPLICATION CLIENT, to the account")
	case errTimeout, errTimeoutMariaDB:
		return sdk.Faultf(sdk.CodeDeadline, "snapshot of %s: %v", what, err).Suggest("raise snapshot.statementTimeout or lower snapshot.chunkRows")
	}
	return sdk.Faultf(sdk.CodeUnavailable, "snapshot of %s: %v", what, err).Retry()
}

// errVoid says that a window became void: what it covers is read again.
var errVoid = errors.New("the window is void")

// list finds the tables that have no progress yet.
func (w *Weaver) list(ctx context.Context, s *session) error {
	names, err := s.tables(ctx, w.src.Wants)
	if err != nil {
		return err
	}
	parents, err := s.parents(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parents, w.listing = parents, false
	for _, n := range names {
		if w.tables[n] == nil {
			w.put(newTable(n))
		}
	}
	w.started, w.handed = time.Now(), 0
	return nil
}

// window opens a window at the place of the stream, and in it a snapshot.
func (w *Weaver) window(ctx context.Context, s *session, v *window) error {
	v.opened = make(chan struct{})
	w.mu.Lock()
	w.opening = append(w.opening, v)
	w.mu.Unlock()
	w.signal()
	select {
	case <-v.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	vw, err := s.begin(ctx, v.cur, v.hold())
	if err != nil {
		return err
	}
	w.mu.Lock()
	v.view, v.known = vw, true
	w.mu.Unlock()
	w.signal()
	return nil
}

// close ends a window and its snapshot. Where it failed or is void, what was not
// handed over is read again, once nothing of it is left.
func (w *Weaver) close(ctx context.Context, s *session, v *window, err error) error {
	if err == nil {
		_, err = s.Exec(ctx, "ROLLBACK")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.signal()
	if err == nil && !v.void.Load() {
		v.closed = true
		return nil
	}
	v.void.Store(true)
	w.signal()
	for v.pending > 0 && ctx.Err() == nil {
		w.cond.Wait()
	}
	v.closed = true
	if v.span != nil {
		v.span.again()
	}
	if err == nil {
		err = errVoid
	}
	return err
}

// again lets the span be read from where it was handed over.
func (sp *span) again() {
	sp.read, sp.ended, sp.lost = sp.after, sp.done, false
	if sp.done {
		sp.read = sp.to
	}
}

// push gives a piece to the stream, once there is room for it.
func (w *Weaver) push(ctx context.Context, p *piece) error {
	v := p.window
	w.mu.Lock()
	for w.used >= w.cfg.Memory && !v.void.Load() && ctx.Err() == nil {
		w.cond.Wait()
	}
	defer w.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case v.void.Load(), v.span != nil && v.span.lost:
		return errVoid
	}
	w.used += p.bytes
	v.pending++
	w.pieces = append(w.pieces, p)
	if v.span != nil {
		p.lo = v.span.read
		if p.hi != nil {
			v.span.read = p.hi
		}
		v.span.ended = p.end
	}
	w.signal()
	return nil
}
