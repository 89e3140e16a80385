package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// ReaderSubject is a reader to be proven. Its source holds several transactions,
// the more kinds the better, and stays as it is meanwhile.
type ReaderSubject struct {
	Name string
	// New makes a reader of the source, as a process that has just been started.
	New func(ctx context.Context) (sdk.Reader, error)
	// Idle is how long a reader that waits for more is waited for; 0 = 200 ms.
	Idle time.Duration
}

// RunReader holds a reader to what Reader and Positions promise: its positions are
// in order and survive being printed; whatever points it is opened at, it delivers
// for each of them what lies behind it, no more and no less; blocks end where they
// are full; it ends when it is told to.
func RunReader(t TB, sub *ReaderSubject) {
	t.Helper()
	for _, r := range CheckReader(context.Background(), sub) {
		if r.Err != nil {
			t.Errorf("%s: %s: %v", sub.Name, r.Case, r.Err)
		}
	}
}

// CheckReader is RunReader with the results.
func CheckReader(ctx context.Context, sub *ReaderSubject) []Result {
	all, err := sub.read(ctx, nil, nil, batch.Limits{})
	if err == nil && len(all.stops) < 3 {
		err = fmt.Errorf("the source gives %d positions, expected 3 or more to test with", len(all.stops))
	}
	out := []Result{{"read from the beginning", err}}
	if err != nil {
		return out
	}
	for _, c := range []struct {
		name string
		run  func(context.Context, *ReaderSubject, *stream) error
	}{
		{"positions are in order", positionsOrdered},
		{"positions can be printed", positionsPrinted},
		{"foreign positions are refused", positionsForeign},
		{"resume at each position", resumed},
		{"resume for several points", resumedTogether},
		{"small blocks", smallBlocks},
		{"close and end", closed},
	} {
		out = append(out, Result{c.name, c.run(ctx, sub, all)})
	}
	return out
}

// stream is what a reader delivered.
type stream struct {
	changes []readChange
	stops   []stop // positions at which it can be resumed, in order
	blocks  int
}

// readChange is a change as text, and which points of Open hold it.
type readChange struct {
	text  string
	holds map[int]bool
}

// stop is a position, the count of changes before it and the reader's state there.
type stop struct {
	at    sdk.Position
	done  int
	state map[string]batch.StateItem
}

// open makes a reader and opens it.
func (sub *ReaderSubject) open(ctx context.Context, points []sdk.Point, state map[string]batch.StateItem) (sdk.Reader, error) {
	r, err := sub.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("new: %w", err)
	}
	var items []batch.StateItem
	for _, k := range slices.Sorted(maps.Keys(state)) {
		items = append(items, state[k])
	}
	if err := r.Open(ctx, sdk.Execution{Task: sub.Name, ID: "kit", Epoch: 1}, points, items); err != nil {
		return nil, errors.Join(fmt.Errorf("open: %w", err), r.Close(ctx))
	}
	return r, nil
}

// read reads until the source ends or nothing more comes.
func (sub *ReaderSubject) read(ctx context.Context, points []sdk.Point, state map[string]batch.StateItem, limits batch.Limits) (*stream, error) {
	r, err := sub.open(ctx, points, state)
	if err != nil {
		return nil, err
	}
	defer r.Close(ctx)
	s := &stream{}
	c := &collector{stream: s, reg: batch.NewRegistry(), state: maps.Clone(state)}
	if c.state == nil {
		c.state = map[string]batch.StateItem{}
	}
	c.format, c.version = r.PositionFormat()
	out := batch.NewBuilder(limits)
	for {
		more, err := sub.next(ctx, r, out)
		if err != nil {
			return s, err
		}
		if !out.Empty() {
			block, err := out.Finish()
			if err != nil {
				return s, fmt.Errorf("block %d: %w", s.blocks+1, err)
			}
			if err := c.take(block); err != nil {
				return s, fmt.Errorf("block %d: %w", s.blocks+1, err)
			}
		}
		if !more {
			if c.open {
				return s, errors.New("the stream ends inside of a transaction: its last entry does not say that it ends")
			}
			return s, nil
		}
		out.Reset()
	}
}

// next calls Next once and holds it to its contract.
func (sub *ReaderSubject) next(ctx context.Context, r sdk.Reader, out *batch.Builder) (more bool, err error) {
	idle := sub.Idle
	if idle == 0 {
		idle = 200 * time.Millisecond
	}
	wait, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	err = r.Next(wait, out)
	if open, _ := out.OpenTx(); open && (err == nil || errors.Is(err, io.EOF)) {
		return false, errors.New("the call of Next returned with a transaction entry open, expected EndTx before")
	}
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil && wait.Err() != nil && out.Empty():
		return false, ctx.Err() // it waits for more
	case err != nil:
		return false, fmt.Errorf("next: %w", err)
	case out.Empty() && wait.Err() == nil:
		return false, errors.New("the call of Next returned nothing before its context ended, expected it to wait")
	case out.Empty():
		return false, ctx.Err()
	}
	return true, nil
}

// collector turns blocks into a stream.
type collector struct {
	*stream
	reg     *batch.Registry
	blk     batch.Block
	format  string
	version uint32
	state   map[string]batch.StateItem
	open    bool
	start   []byte
}

func (c *collector) take(block []byte) error {
	c.blocks++
	if err := c.blk.Decode(bytes.Clone(block), c.reg, batch.Limits{}); err != nil {
		return err
	}
	for i := range c.blk.Txs {
		tx := &c.blk.Txs[i]
		switch {
		case tx.Begins == c.open:
			return fmt.Errorf("transaction %q: begins is %v, but the one before has ended: %v", tx.ID, tx.Begins, !c.open)
		case c.open && c.start != nil && !tx.Ends && !bytes.Equal(c.start, tx.Start):
			return fmt.Errorf("transaction %q: its entries start at %q and %q, expected one position", tx.ID, c.start, tx.Start)
		}
		next := tx.Ordinal
		for k := tx.First; k < tx.First+tx.Count; k++ {
			var e batch.Event
			if err := c.blk.Event(k, &e); err != nil {
				return err
			}
			if done, err := c.event(&e, tx); err != nil {
				return err
			} else if done {
				next = e.Ordinal + 1
			}
		}
		c.open, c.start = !tx.Ends, tx.Start
		switch {
		case tx.Ends && len(tx.End) > 0:
			c.stop(tx.End, 0)
		case !tx.Ends && next > 0:
			c.stop(tx.Start, next)
		}
	}
	return nil
}

func (c *collector) stop(source []byte, ordinal uint64) {
	at := sdk.Position{Format: c.format, Version: c.version, Source: bytes.Clone(source), Ordinal: ordinal}
	c.stops = append(c.stops, stop{at, len(c.changes), maps.Clone(c.state)})
}

// event notes an event; it reports whether it is a change.
func (c *collector) event(e *batch.Event, tx *batch.Tx) (bool, error) {
	text := ""
	switch e.Kind {
	case batch.Heartbeat, batch.Origin:
		return false, nil
	case batch.State:
		item, err := e.StateItem()
		if err != nil {
			return false, err
		}
		item.Value = bytes.Clone(item.Value)
		if c.state[item.Key] = *item; item.Deleted {
			delete(c.state, item.Key)
		}
		return false, nil
	case batch.DDL:
		ch, err := e.Change()
		if err != nil {
			return false, err
		}
		text = fmt.Sprintf("ddl %d of %s.%s: %s", ch.Kind, ch.Namespace, ch.Table, ch.Statement)
	default:
		if e.Schema != nil {
			text = e.Schema.Name()
		}
		text = fmt.Sprintf("%s of %s, key %x (before %x): %x → %x %x", e.Kind, text, e.Key, e.OldKey, e.Before.Data(), e.After.Data(), e.Body())
	}
	holds := map[int]bool{}
	for _, cover := range tx.Covers {
		if cover.Upto == 0 || e.Ordinal < cover.Upto {
			holds[cover.Point] = true
		}
	}
	c.changes = append(c.changes, readChange{text, holds})
	return true, nil
}
