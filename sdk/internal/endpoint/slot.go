package endpoint

import (
	"context"
	"sync"
)

// slot holds one stream at a time. A new one ends the one before: the receiver
// that opens it has lost the other.
type slot struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
}

// enter waits for the end of the stream before and takes its place. The caller
// ends the returned context by leave.
func (s *slot) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.end(ctx); err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil { // it was given up before it was begun
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	s.cancel, s.done = cancel, done
	return ctx, func() { cancel(); close(done) }, nil
}

// clear ends the stream, if there is one, and waits for its end.
func (s *slot) clear(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end(ctx)
}

func (s *slot) end(ctx context.Context) error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	select {
	case <-s.done:
		s.cancel = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
