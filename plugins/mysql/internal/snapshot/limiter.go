package snapshot

import (
	"context"
	"sync"
	"time"
)

// limiter spaces rows so that there are no more than perSecond.
type limiter struct {
	perSecond int
	mu        sync.Mutex
	next      time.Time
}

// most is how many rows one statement may read: a quarter of a second's.
func (l *limiter) most(rows int) int {
	if l.perSecond > 0 {
		return max(1, min(rows, l.perSecond/4))
	}
	return rows
}

// wait takes n rows, after as long as those before need.
func (l *limiter) wait(ctx context.Context, n int) error {
	if l.perSecond <= 0 || n == 0 {
		return ctx.Err()
	}
	l.mu.Lock()
	now := time.Now()
	if l.next.Before(now) {
		l.next = now
	}
	l.next = l.next.Add(time.Duration(float64(n) / float64(l.perSecond) * float64(time.Second)))
	d := l.next.Sub(now)
	l.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
