package supervisor

import (
	"context"
	"time"
)

// run is what belongs to one launch; news of an older one are dropped.
type run struct {
	cancel  context.CancelFunc // of the start
	started bool
	closing bool
}

// carryOut runs in the loop and does not block it.
func (s *Supervisor[T]) carryOut(f Effect) {
	switch f.Kind {
	case Launching:
		s.launchOne()
	case Closing:
		s.closeOne()
	case Waiting:
		at := s.State().Since
		time.AfterFunc(f.Delay, func() {
			s.post(func() {
				if st := s.State(); st.Phase == BackOff && st.Since == at {
					s.step(Expired, "the delay is over")
				}
			})
		})
	case Telling:
		s.mu.Lock()
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
	}
}

func (s *Supervisor[T]) launchOne() {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{cancel: cancel}
	s.run = r
	go func() {
		defer cancel()
		in, err := s.start(ctx)
		s.post(func() {
			if err != nil {
				s.mu.Lock()
				s.lastErr = err
				s.mu.Unlock()
				kind := Failed
				if hopeless(err) {
					kind = Hopeless
				}
				s.step(kind, err.Error())
				return
			}
			s.mu.Lock()
			s.current, s.has = in, true
			s.mu.Unlock()
			r.started = true
			if r.closing {
				s.end(r, in)
				return
			}
			s.step(Started, "")
			go func() {
				<-in.Exited()
				s.post(func() {
					if s.run == r && !r.closing {
						s.mu.Lock()
						s.lastErr = &deathError{in.How()}
						s.mu.Unlock()
						kind := Died
						if c, ok := any(in).(interface{ Charged() bool }); ok && c.Charged() {
							kind = Charged
						}
						s.step(kind, in.How())
					}
				})
			}()
		})
	}()
}

// closeOne closes what runs, or what is about to.
func (s *Supervisor[T]) closeOne() {
	s.run.closing = true
	if !s.run.started {
		s.run.cancel()
		return
	}
	s.end(s.run, s.current)
}

func (s *Supervisor[T]) end(r *run, in T) {
	go func() {
		err := in.Close(context.Background()) // bounded by the instance's grace period
		if err != nil {
			s.opts.Log.Warn("plugin did not close as it should", "error", err)
		}
		s.post(func() {
			if s.run == r {
				s.step(Ended, "closed")
			}
		})
	}()
}

// deathError is the cause that Ready names after a death.
type deathError struct{ how string }

func (e *deathError) Error() string { return "it died: " + e.how }
