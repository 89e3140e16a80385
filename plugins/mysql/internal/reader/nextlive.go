package reader

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/snapshot"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// tellEvery is how often progress through transactions that do not concern the task
// is told, and that the end of the log is reached.
const tellEvery = time.Second

// A server sends small packets, and a reader that is faster would hand over a block
// and be woken for each. Where blocks follow each other within dense, one that is
// smaller than slim waits for more, up to naps times nap. What comes alone is handed
// over at once.
const (
	dense = 500 * time.Microsecond
	nap   = 150 * time.Microsecond
	naps  = 4
	slim  = 32 << 10
)

// nextLive appends what has arrived, or waits for it.
func (r *Reader) nextLive(ctx context.Context, out *batch.Builder) error {
	l := r.live
	l.ctx = ctx // of the calls to the server that a step may need
	defer func() { l.ctx = nil }()
	r.silent, l.ends, l.naps = 0, 0, 0
	for r.ended == nil && !out.Full() && ctx.Err() == nil && r.silent < quietBytes {
		if l.anew != anewNone && l.next != snapshot.More && !r.tx.active {
			if err := r.anewStep(out); err != nil {
				r.ended = r.fault(err)
				break
			}
		}
		if !r.tx.active && !r.tx.open && len(r.levels) == 0 && l.next != snapshot.More && l.anew == anewNone && len(r.unsaved)+len(r.unsavedItems)+len(r.doubts) > 0 {
			if err := errors.Join(r.settleDoubts(ctx), r.saveLayouts(out)); err != nil {
				r.ended = r.fault(err)
				break
			}
		}
		if l.weaver != nil && !r.tx.active && l.weaver.Active() {
			next, err := r.weave(out)
			if err != nil {
				r.ended = r.fault(err)
				break
			}
			if next == snapshot.More || next == snapshot.Hold && !out.Empty() {
				break
			}
			if next == snapshot.Hold {
				select {
				case <-ctx.Done():
				case <-l.weaver.Ready():
				}
				continue
			}
		}
		if l.anew != anewNone {
			if !out.Empty() {
				break
			}
			select {
			case <-ctx.Done():
			case <-l.asked:
			case <-l.weaver.Ready():
			}
			continue
		}
		err := r.stepLive(out)
		if err == nil {
			continue
		}
		again, err := r.pauseLive(ctx, out, err)
		if err != nil {
			r.ended = r.fault(err)
		}
		if !again {
			break
		}
	}
	if l.next != snapshot.More { // else an entry of the snapshot goes on
		if err := r.pause(out); err != nil {
			return err
		}
	}
	failpoint.Hit("mysql.block")
	if !out.Empty() {
		l.handed = time.Now()
	}
	if out.Empty() {
		if r.ended != nil {
			return r.ended
		}
		return ctx.Err()
	}
	return nil
}

func (r *Reader) stepLive(out *batch.Builder) error {
	if l := r.live; l.conn == nil && !r.tx.active && len(r.levels) == 0 {
		return l.lost
	}
	return r.step(out)
}

// pauseLive does what an error of a step demands: it waits where nothing more has
// arrived, and connects anew where the connection is lost. With again false what
// out holds is handed over first.
func (r *Reader) pauseLive(ctx context.Context, out *batch.Builder, err error) (again bool, fatal error) {
	l := r.live
	switch {
	case err == binlog.ErrWait:
		if !out.Empty() && l.naps < naps && out.Size() < slim && r.scan.Buffered() < slim && time.Since(l.handed) < dense+naps*nap {
			l.naps++
			time.Sleep(nap)
			return true, nil
		}
		if !out.Empty() || r.tx.passed && time.Since(l.told) >= tellEvery {
			return false, nil
		}
		if l.beat && time.Since(l.told) >= tellEvery {
			return false, r.tellIdle(out)
		}
		if r.share(ctx) {
			return true, nil
		}
		err = r.wait(ctx)
		if err == nil || ctx.Err() != nil {
			return err == nil, nil
		}
		r.logLost(err)
		l.lost = err
		if errors.Is(err, errSilent) && !l.sharing.joined {
			l.try = (l.turn + 1) % len(l.addrs) // where one is silent the others come first
		}
	case l.conn == nil: // lost before, and what out held was handed over
	case isLost(err):
		err = refusal(l.conn, ptr(r.spotHere()), err)
		var f *sdk.Fault
		if errors.As(err, &f) {
			if out.Empty() {
				return false, f
			}
			l.lost = f
			l.hangUp()
			return false, nil
		}
		r.logLost(err)
		l.lost = err
	default:
		return false, err
	}
	l.unshare()
	if r.sw.WholeOff && l.gather.on && r.identify() == nil {
		l.advance(&r.group, &r.here)
	}
	l.hangUp()
	l.gather.reset()
	if !out.Empty() {
		return false, nil
	}
	var f *sdk.Fault
	if errors.As(l.lost, &f) {
		return false, f
	}
	if err := r.reconnect(ctx); err != nil {
		if ctx.Err() != nil {
			return false, nil
		}
		return false, err
	}
	l.lost = nil
	return true, nil
}

func (r *Reader) logLost(err error) {
	if r.live.sharing.joined {
		r.log.Info("reading goes on with a connection of its own", "reason", err)
		return
	}
	r.log.Warn("connection to the source lost", "reason", err)
}

func ptr[T any](v T) *T { return &v }

// errSilent says that a peer is dead.
var errSilent = errors.New("nothing came for three heartbeats")

// wait waits until something arrives. A server that is there sends a heartbeat in
// each period.
func (r *Reader) wait(ctx context.Context) error {
	l := r.live
	now, last := time.Now(), l.conn.LastRead()
	if !last.Equal(l.heard) || now.Sub(l.waited) > l.period {
		// It was not read from meanwhile: give it a period, once.
		l.heard, l.grace = last, now.Add(l.period)
	}
	dead := last.Add(3 * l.period)
	if dead.Before(l.grace) {
		dead = l.grace
	}
	until := dead
	if t := l.told.Add(tellEvery); (r.tx.passed || l.beat) && t.Before(until) {
		until = t
	}
	var wake <-chan struct{}
	if l.weaver != nil {
		wake = l.weaver.Ready()
	}
	err := l.conn.Wait(ctx, until, wake)
	l.waited = time.Now()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if until.Before(dead) {
			return nil
		}
		if r.sw.SilenceOff {
			return nil
		}
		return errSilent
	}
	return err
}

// tellIdle appends a sign of life: all that the server had was delivered.
func (r *Reader) tellIdle(out *batch.Builder) error {
	l := r.live
	l.told, l.beat = time.Now(), false
	if err := out.BeginTx(batch.Tx{Begins: true}); err != nil {
		return err
	}
	if err := out.Heartbeat(l.told.UnixMicro()); err != nil {
		return err
	}
	return out.EndTx(true, nil, nil)
}
