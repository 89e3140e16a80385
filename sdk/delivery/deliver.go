package delivery

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// deliver writes the items and the progress after them, for one lane or, with a
// group, for several. L is the lane whose goroutine this is.
func (r *run) deliver(l *lane, lanes []*lane, items []item, to place, g *group) {
	ch := sdk.Changes{Lane: lanes[0].no}
	l.seg.reset()
	var extra sdk.Next
	for i := range items {
		it := &items[i]
		ch.Ceiling = max(ch.Ceiling, it.req.req.Ceiling)
		switch {
		case it.kind == itemAside:
			extra.SetAside = append(extra.SetAside, it.req.req.SetAside...)
			extra.Dropped = append(extra.Dropped, it.req.req.Dropped...)
		case it.ev.Kind == batch.State:
			s, err := it.ev.StateItem()
			if err != nil {
				r.stop(err)
				return
			}
			extra.State = append(extra.State, *s)
		default:
			if err := l.seg.add(it, i); err != nil {
				r.stop(err)
				return
			}
		}
	}
	ch.Segments = l.seg.take()
	if r.cfg.Switches.MergeAcrossWait && !r.await(items) {
		return
	}
	if !to.set {
		to = place{pos: lanes[0].point.Position, mark: lanes[0].at, set: true}
	}
	to.pos.Source = bytes.Clone(to.pos.Source)
	next := make([]sdk.Next, len(lanes))
	for i, x := range lanes {
		next[i].Point = sdk.Point{Writer: r.e.ex.Writer, Lane: x.no, BatchNo: x.point.BatchNo + 1, Position: to.pos}
	}
	ch.To = to.pos
	next[0].State, next[0].SetAside, next[0].Dropped = extra.State, extra.SetAside, extra.Dropped

	r.e.prepare.RLock()
	records, err := r.write(&ch, next)
	r.e.prepare.RUnlock()
	switch {
	case err != nil:
		r.stop(err)
	case len(records) > 0:
		r.refused(l.seg.owners, items, records)
	default:
		failpoint.Hit("delivery.committed")
		r.committed(l, lanes, items, next, to, g)
	}
}

// await is what the switch MergeAcrossWait puts in the place of a cut.
func (r *run) await(items []item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range items {
		for !r.ready(items[i].waits) {
			if r.state != running {
				return false
			}
			r.cond.Wait()
		}
	}
	return true
}

// write makes the changes and the progress durable. It tries again what a
// retryable fault ended.
func (r *run) write(ch *sdk.Changes, next []sdk.Next) ([]sdk.RecordError, error) {
	wait := r.cfg.Backoff
	for try := 0; ; try++ {
		records, err := r.once(ch, next)
		if err == nil {
			return records, nil
		}
		f := sdk.AsFault(err)
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		if !(f.Retryable || f.Code == sdk.CodeUnavailable) || try >= r.cfg.Retries {
			return nil, err
		}
		r.cfg.Log.Warn("target transaction is tried again", "lane", ch.Lane, "try", try+1, "error", err)
		select {
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		case <-r.cfg.Clock.After(wait):
		}
		wait = min(2*wait, 2*time.Second)
	}
}

func (r *run) once(ch *sdk.Changes, next []sdk.Next) ([]sdk.RecordError, error) {
	if r.e.tw != nil {
		return r.transact(ch, next)
	}
	if ch.Len() == 0 {
		return nil, nil
	}
	ctx := r.ctx
	r.mu.Lock()
	deadline := r.deadline
	r.mu.Unlock()
	if deadline != 0 {
		left := time.Duration(deadline-r.cfg.Clock.Boottime()) * time.Microsecond
		if left <= 0 {
			return nil, sdk.Faultf(sdk.CodeDeadline, "nothing may be written any more: the host's lease ended %s ago", -left)
		}
		ch.Deadline = r.cfg.Clock.Now().Add(left)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, ch.Deadline)
		defer cancel()
	}
	failpoint.Hit("delivery.begin")
	if r.e.vw != nil {
		return r.e.vw.ApplyAt(ctx, ch)
	}
	return r.e.iw.Apply(ctx, ch)
}

// transact is one try of a target transaction.
func (r *run) transact(ch *sdk.Changes, next []sdk.Next) (records []sdk.RecordError, err error) {
	lanes := make([]int32, len(next))
	for i := range next {
		lanes[i] = next[i].Lane
	}
	failpoint.Hit("delivery.begin")
	tx, err := r.e.tw.Begin(r.ctx, lanes)
	if err != nil {
		return nil, err
	}
	ended := false
	defer func() {
		if ended {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), 10*time.Second)
		defer cancel()
		if rerr := tx.Rollback(ctx); rerr != nil && err == nil {
			err = rerr
		}
	}()
	failpoint.Hit("delivery.begun")
	if err := tx.Fence(r.ctx, next); err != nil {
		return nil, err
	}
	failpoint.Hit("delivery.fenced")
	if ch.Len() > 0 {
		if records, err := tx.Apply(r.ctx, ch); err != nil || len(records) > 0 {
			return records, err
		}
	}
	failpoint.Hit("delivery.applied")
	err = tx.Commit(r.ctx)
	ended = err == nil
	if errors.Is(err, sdk.ErrCommitUnknown) {
		// The session is of no use any more, and must not hold the row that Settle locks.
		ended = true
		_ = tx.Rollback(r.ctx)
		return nil, r.settle(next, err)
	}
	return nil, err
}

// settle finds out what became of a commit whose answer was lost. A retryable
// fault says that it had no effect.
func (r *run) settle(next []sdk.Next, cause error) error {
	if r.cfg.Switches.SettleOff {
		return sdk.Faultf(sdk.CodeUnavailable, "the answer to a commit was lost: %v", cause).Retry()
	}
	for i := range next {
		p, err := r.settleLane(next[i].Lane)
		if err != nil {
			return err
		}
		n := &next[i].Point
		switch {
		case p.BatchNo == n.BatchNo && samePosition(p.Position, n.Position):
		case p.BatchNo+1 == n.BatchNo && i == 0:
			return sdk.Faultf(sdk.CodeUnavailable, "the commit of batch %d of lane %d had no effect: %v", n.BatchNo, n.Lane, cause).Retry()
		case p.BatchNo < n.BatchNo:
			return sdk.Faultf(sdk.CodeTargetWentBack, "lane %d is at batch %d after batch %d was sent: the target went back", n.Lane, p.BatchNo, n.BatchNo)
		default:
			return sdk.Faultf(sdk.CodeFenced, "lane %d is at batch %d, position %q, after batch %d, position %q, was sent: another execution writes to the target",
				n.Lane, p.BatchNo, p.Position.Source, n.BatchNo, n.Position.Source)
		}
	}
	return nil
}

func (r *run) settleLane(lane int32) (sdk.Point, error) {
	wait := r.cfg.Backoff
	for try := 0; ; try++ {
		p, err := r.e.tw.Settle(r.ctx, lane)
		if err == nil {
			return p, nil
		}
		if f := sdk.AsFault(err); !(f.Retryable || f.Code == sdk.CodeUnavailable) || try >= r.cfg.Retries || r.ctx.Err() != nil {
			return p, err
		}
		select {
		case <-r.ctx.Done():
			return p, r.ctx.Err()
		case <-r.cfg.Clock.After(wait):
		}
		wait = min(2*wait, 2*time.Second)
	}
}

func samePosition(a, b sdk.Position) bool {
	return a.Ordinal == b.Ordinal && a.Version == b.Version && a.Format == b.Format && bytes.Equal(a.Source, b.Source)
}
