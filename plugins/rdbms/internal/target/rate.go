package target

import (
	"context"
	"sync"
	"time"
)

// Clock is the time as the rate sees it.
type Clock interface {
	Now() time.Time
	// Sleep waits, and returns ctx's error where that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rate holds what is written to so many units a second. What a transaction
// writes is a debt that those after it wait for: nothing waits with locks held.
type rate struct {
	clock Clock
	each  time.Duration // one unit; 0 = no limit

	mu   sync.Mutex
	free time.Time // when the debt is paid
}

func newRate(perSecond int64, c Clock) *rate {
	r := &rate{clock: c}
	if perSecond > 0 {
		r.each = max(time.Second/time.Duration(perSecond), 1)
	}
	return r
}

// wait returns when no debt is left.
func (r *rate) wait(ctx context.Context) error {
	if r.each == 0 {
		return nil
	}
	for {
		r.mu.Lock()
		d := r.free.Sub(r.clock.Now())
		r.mu.Unlock()
		if d <= 0 {
			return nil
		}
		if err := r.clock.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

// spend adds n units to the debt.
func (r *rate) spend(n int64) {
	if r.each == 0 || n <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now(); r.free.Before(now) {
		r.free = now
	}
	r.free = r.free.Add(time.Duration(n) * r.each)
}
