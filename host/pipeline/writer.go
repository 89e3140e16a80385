package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
	"github.com/datalink-go/datalink/sdk/wire"
)

// errReopen says that the reader must be opened again: a writer is at a place
// that the window does not hold, or it came back after it was detached.
var errReopen = errors.New("the reader must be opened again")

// writer drives one sink through a round. All its fields belong to the goroutine
// of serve, but for inbox.
type writer struct {
	cfg    *WriterConfig
	run    *Config
	win    *window
	signal chan struct{}

	sink    Sink
	stream  SinkStream
	build   *builder
	maps    *mapping
	claimed *sdk.Claimed // as of the round's beginning
	points  []sdk.Point  // as last reported

	cursor   int64 // entry to send next, and the event in its mapped block
	event    int
	acked    int64 // entries before it are durable
	seq      uint64
	attempt  uint32
	inflight []*sent
	records  int // in flight
	bytes    int

	unsaved  Saved
	unstored int // records acknowledged by the sink and not yet saved
	savedAt  time.Time
	pending  int64 // entries before it are durable once unsaved is saved

	inbox    inbox
	failures int // tries without progress
	hunt     hunt
	detached bool
}

// inbox passes replies from the goroutine that receives them.
type inbox struct {
	mu      sync.Mutex
	replies []*wire.WriteReply
	err     error
	signal  chan struct{}
}

func (in *inbox) put(r *wire.WriteReply, err error) {
	in.mu.Lock()
	if r != nil {
		in.replies = append(in.replies, r)
	}
	if err != nil {
		in.err = err
	}
	in.mu.Unlock()
	select {
	case in.signal <- struct{}{}:
	default:
	}
}

func (in *inbox) take() ([]*wire.WriteReply, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	r := in.replies
	in.replies = nil
	return r, in.err
}

// serve sends entries and handles replies until the window ends and all is
// durable, or a fault ends the run. A nil error says that all is done.
func (w *writer) serve(ctx context.Context) error {
	for {
		err := w.session(ctx)
		if err == nil || errors.Is(err, errReopen) || ctx.Err() != nil {
			return err
		}
		if fatal := w.fatal(err); fatal != nil {
			return fatal
		}
		if err := w.recover(ctx, err); err != nil {
			return err
		}
	}
}

// fatal returns err, named, when it must end the run.
func (w *writer) fatal(err error) error {
	if errors.Is(err, ErrDied) {
		return nil
	}
	f := sdk.AsFault(err)
	if f.Retryable || f.Code == sdk.CodeUnavailable || f.Code == sdk.CodeDeadline || f.Code == sdk.CodeCommitUnknown {
		if w.failures+1 < w.run.Backoff.Attempts {
			return nil
		}
		return fmt.Errorf("writer %s: %d tries in a row without progress: %w", w.cfg.Name, w.failures+1, err)
	}
	return fmt.Errorf("writer %s: %w", w.cfg.Name, err)
}

// session is one stream to the sink.
func (w *writer) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.sink.Write(ctx)
	if err != nil {
		return err
	}
	w.stream = stream
	w.seq, w.attempt = 0, 0
	w.inbox = inbox{signal: make(chan struct{}, 1)}
	w.build.restart()
	var done sync.WaitGroup
	done.Go(func() {
		for {
			r, err := stream.Recv()
			w.inbox.put(r, err)
			if err != nil {
				return
			}
		}
	})
	err = w.pump(ctx)
	cancel()
	_ = stream.Close()
	done.Wait()
	return err
}

// pump alternates between sending and handling replies.
func (w *writer) pump(ctx context.Context) error {
	closing := false
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		replies, rerr := w.inbox.take()
		for _, r := range replies {
			if err := w.reply(ctx, r); err != nil {
				return err
			}
		}
		if rerr != nil {
			if !errors.Is(rerr, io.EOF) {
				return rerr
			}
			if closing && w.drained() {
				return w.save(ctx, true)
			}
			f := sdk.Faultf(sdk.CodeUnavailable, "its stream ended with %d blocks not acknowledged", len(w.inflight)+int(w.win.last()+1-w.cursor))
			if closing && len(w.inflight) == 0 {
				return lateRefusal{f} // what was refused last is sent on a new stream
			}
			return f
		}
		progress := false
		if !closing {
			sent, ended, err := w.send()
			if err != nil {
				return err
			}
			if ended {
				closing = true
				if err := w.stream.CloseSend(); err != nil {
					return fmt.Errorf("%w: %w", ErrDied, err)
				}
			}
			progress = sent
		}
		if progress {
			continue
		}
		if err := w.save(ctx, false); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.inbox.signal:
		case <-w.signal:
		case <-tick.C:
		}
	}
}

// drained reports whether all that is not acknowledged belongs to a source
// transaction whose end was never read: it is dropped and read again next time.
func (w *writer) drained() bool {
	if w.cursor <= w.win.last() {
		return false // a refusal made the writer go back after the stream was closed
	}
	return len(w.inflight) == 0 || w.inflight[0].entry.index >= w.win.tail()
}

// send hands over the next block if the sink's share of the window allows it.
// Ended says that no block will follow.
func (w *writer) send() (sent, ended bool, err error) {
	if len(w.inflight) > 0 && (w.hunt.holds(w.inflight) || w.records >= w.run.Window.Records || w.bytes >= w.run.Window.Bytes) {
		return false, false, nil
	}
	e, end := w.win.get(w.cursor)
	if e == nil {
		return false, end, nil
	}
	if err := w.build.open(w.maps, e); err != nil {
		return false, false, err
	}
	n := w.build.blk.Len()
	to := n
	if limit := w.hunt.limit; limit > 0 {
		to = min(n, w.event+limit)
	}
	req, s, err := w.build.build(e, w.event, to, w.hunt.limit > 0)
	if err != nil {
		return false, false, err
	}
	w.seq++
	s.seq, req.Seq, req.Attempt = w.seq, w.seq, w.attempt
	if w.seq == 1 {
		for _, p := range w.points {
			req.Lanes = append(req.Lanes, int64(p.Lane))
		}
		req.Behind = w.build.behind
	}
	if w.cfg.Leased && w.run.Deadline != nil {
		req.DeadlineMicros = w.run.Deadline()
	}
	if w.cfg.Versioned {
		if req.Ceiling, err = w.run.Progress.Reserve(context.Background(), w.cfg.Name, req.VersionBase+uint64(n)); err != nil {
			return false, false, err
		}
	}
	w.build.fresh = false
	w.inflight = append(w.inflight, s)
	w.records += to - w.event
	s.bytes = len(req.Block)
	w.bytes += s.bytes
	if to >= n {
		w.cursor, w.event = w.cursor+1, 0
	} else {
		w.event = to
	}
	failpoint.Hit("pipeline.sending")
	if err := w.stream.Send(req); err != nil {
		return false, false, fmt.Errorf("%w: %w", ErrDied, err)
	}
	failpoint.Hit("pipeline.sent")
	return true, false, nil
}

func (w *writer) reply(ctx context.Context, r *wire.WriteReply) error {
	if len(r.Points) > 0 {
		w.points = mergePoints(w.points, r.Points)
	}
	if r.Skipped > 0 {
		w.run.Observer.Skipped(w.cfg.Name, int(r.Skipped))
	}
	for len(w.inflight) > 0 && w.inflight[0].seq <= r.Acked {
		w.take(w.inflight[0])
		w.inflight = w.inflight[1:]
	}
	if err := w.save(ctx, false); err != nil {
		return err
	}
	if r.Fault != nil {
		return r.Fault
	}
	if len(r.Records) > 0 && r.Attempt == w.attempt {
		return w.refused(r)
	}
	return nil
}

// take notes that a request is durable at the sink.
func (w *writer) take(s *sent) {
	failpoint.Hit("pipeline.acked")
	w.failures = 0
	w.records -= s.to - s.from
	w.bytes -= s.bytes
	w.unstored += s.records
	w.unsaved.State = append(w.unsaved.State, s.state...)
	if !w.cfg.Stores {
		w.unsaved.SetAside = append(w.unsaved.SetAside, s.aside...)
	}
	if s.whole {
		w.pending = s.entry.index + 1
	}
	w.hunt.passed(s)
	last := sdk.Position{}
	if s.whole {
		last = s.entry.last
	}
	w.run.Observer.Acked(w.cfg.Name, s.counts, s.entry.committed, last)
	if s.covered > 0 {
		w.run.Observer.Skipped(w.cfg.Name, s.covered)
	}
	for _, d := range s.aside {
		w.run.Observer.DeadLettered(w.cfg.Name, d)
	}
}

// save makes the progress of writers that do not store it durable, at most once
// a second unless much waits for it, and lets go of the entries.
func (w *writer) save(ctx context.Context, now bool) error {
	if w.pending <= w.acked && !(now && len(w.unsaved.State)+len(w.unsaved.SetAside) > 0) {
		return nil
	}
	if !w.cfg.Stores {
		if !now && time.Since(w.savedAt) < time.Second && w.unstored < w.run.Window.Records/4 && w.win.fullFor() == 0 {
			return nil
		}
		if e, _ := w.win.get(w.pending - 1); e != nil {
			w.points = []sdk.Point{{Writer: w.cfg.Name, Position: e.last}}
			if len(w.claimed.Points) == 1 {
				w.points[0].BatchNo = w.claimed.Points[0].BatchNo
			}
		}
		w.unsaved.Points = w.points
		if err := w.run.Progress.Save(ctx, w.cfg.Name, &w.unsaved); err != nil {
			return fmt.Errorf("save progress of writer %s: %w", w.cfg.Name, err)
		}
		w.unsaved, w.savedAt = Saved{}, time.Now()
	}
	w.unstored = 0
	w.win.ack(w.acked, w.pending)
	w.acked = w.pending
	w.build.forget(w.acked)
	w.maps.forget(w.acked)
	return nil
}

// refused handles records that the target cannot take: it stops, or marks them
// and sends again from the first block that is not acknowledged.
func (w *writer) refused(r *wire.WriteReply) error {
	i := 0
	for i < len(w.inflight) && w.inflight[i].seq != r.FailedSeq {
		i++
	}
	if i == len(w.inflight) {
		return fmt.Errorf("writer %s refused records of block %d, which is not in flight", w.cfg.Name, r.FailedSeq)
	}
	s := w.inflight[i]
	for _, rec := range r.Records {
		at := spot{s.entry.index, s.from + int(rec.Index)}
		if w.cfg.OnError != DeadLetterOnError {
			return w.name(s.entry, at, &rec.Fault)
		}
		if _, again := w.build.failed[at]; again {
			return fmt.Errorf("writer %s refused a record that was set aside already: %w", w.cfg.Name, w.name(s.entry, at, &rec.Fault))
		}
		w.build.failed[at] = rec.Fault
	}
	w.attempt++
	w.rewind()
	return nil
}

// rewind makes the next send begin with the first request in flight.
func (w *writer) rewind() {
	if len(w.inflight) > 0 {
		w.cursor, w.event = w.inflight[0].entry.index, w.inflight[0].from
		w.seq = w.inflight[0].seq - 1
	}
	w.inflight, w.records, w.bytes = nil, 0, 0
}

// name wraps a record's fault with what identifies the record.
func (w *writer) name(e *entry, at spot, f *sdk.Fault) error {
	var ev batch.Event
	if err := w.build.open(w.maps, e); err != nil {
		return err
	}
	if err := w.build.blk.Event(at.event, &ev); err != nil {
		return err
	}
	where := fmt.Sprintf("record %d of the block from %s", at.event, describePosition(e.first))
	if ev.Schema != nil {
		where = fmt.Sprintf("%s of %s, key %s, %s", ev.Kind, ev.Schema.Name(), describeKey(&ev), where)
	}
	c := *f
	c.Message = fmt.Sprintf("%s: %s", where, f.Message)
	c.Retryable = false
	if c.Suggestion == "" {
		c.Suggestion = "mend the target or the record, or set onError: dead-letter for this writer"
	}
	return &c
}

func mergePoints(have, got []sdk.Point) []sdk.Point {
	out := append([]sdk.Point(nil), have...)
next:
	for _, p := range got {
		if p.Lane == sdk.WriterLane {
			continue
		}
		for i := range out {
			if out[i].Lane == p.Lane {
				out[i] = p
				continue next
			}
		}
		out = append(out, p)
	}
	return out
}
