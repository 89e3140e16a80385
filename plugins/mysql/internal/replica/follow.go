package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Follower is a task in small: it drives a reader and keeps position, reader state
// and rows together, as a transactional target does, so that a new reader goes on
// exactly where the last one stopped.
type Follower struct {
	New     func() (sdk.Reader, error)
	Limits  batch.Limits
	Replica *Replica
	// Each is called after each event that was applied; it may be nil.
	Each func(tx *batch.Tx, e *batch.Event)

	mu     sync.Mutex
	point  sdk.Position
	state  map[string]batch.StateItem
	Opened int // how many readers there were
}

// Position returns how far the replica is.
func (f *Follower) Position() sdk.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.point
}

// State returns the reader's state as stored.
func (f *Follower) State() map[string]batch.StateItem {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.state)
}

// Run opens a reader and follows it until its source ends (nil), ctx ends (nil),
// or idle passes without anything new (nil; 0 = never). A block that was read
// when ctx ends is dropped, as by a process that dies.
func (f *Follower) Run(ctx context.Context, idle time.Duration) error {
	r, err := f.New()
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.Close(end)
	}()
	f.Opened++
	var points []sdk.Point
	var items []batch.StateItem
	if !f.point.IsZero() {
		points = []sdk.Point{{Position: f.point}}
		for _, k := range slices.Sorted(maps.Keys(f.state)) {
			items = append(items, f.state[k])
		}
	}
	if err := r.Open(ctx, sdk.Execution{Task: "follower", ID: fmt.Sprint(f.Opened), Epoch: uint64(f.Opened)}, points, items); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("open at %q: %w", f.point.Source, err)
	}
	out, reg := batch.NewBuilder(f.Limits), batch.NewRegistry()
	format, version := r.PositionFormat()
	for {
		out.Reset()
		wait, cancel := ctx, func() {}
		if idle > 0 {
			wait, cancel = context.WithTimeout(ctx, idle)
		}
		err := r.Next(wait, out)
		timed := wait.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if !out.Empty() {
			data, err := out.Finish()
			if err != nil {
				return err
			}
			if err := f.take(bytes.Clone(data), reg, format, version, len(points)); err != nil {
				return err
			}
			if err := r.Durable(ctx, f.point); err != nil {
				return err
			}
			continue
		}
		switch {
		case errors.Is(err, io.EOF), timed:
			return nil
		case err != nil:
			return err
		}
	}
}

// take applies a block.
func (f *Follower) take(data []byte, reg *batch.Registry, format string, version uint32, points int) error {
	var blk batch.Block
	if err := blk.Decode(data, reg, f.Limits); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == nil {
		f.state = map[string]batch.StateItem{}
	}
	for i := range blk.Txs {
		tx := &blk.Txs[i]
		next := tx.Ordinal
		for k := tx.First; k < tx.First+tx.Count; k++ {
			var e batch.Event
			if err := blk.Event(k, &e); err != nil {
				return err
			}
			switch e.Kind {
			case batch.State:
				it, err := e.StateItem()
				if err != nil {
					return err
				}
				if f.state[it.Key] = *it; it.Deleted {
					delete(f.state, it.Key)
				}
				continue
			case batch.Heartbeat, batch.Origin:
				continue
			}
			next = e.Ordinal + 1
			if points > 0 && covered(tx, e.Ordinal) {
				continue
			}
			if err := f.Replica.Apply(&e); err != nil {
				return fmt.Errorf("transaction %s, change %d, after %q: %w", tx.ID, e.Ordinal, f.point.Source, err)
			}
			if f.Each != nil {
				f.Each(tx, &e)
			}
		}
		switch {
		case tx.Ends && len(tx.End) > 0:
			f.point = sdk.Position{Format: format, Version: version, Source: bytes.Clone(tx.End)}
		case !tx.Ends && next > 0:
			f.point = sdk.Position{Format: format, Version: version, Source: bytes.Clone(tx.Start), Ordinal: next}
		}
	}
	return nil
}

func covered(tx *batch.Tx, ordinal uint64) bool {
	for _, c := range tx.Covers {
		if c.Point == 0 && (c.Upto == 0 || ordinal < c.Upto) {
			return true
		}
	}
	return false
}
