package supervisor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fake is an instance without a process.
type fake struct {
	exited chan struct{}
	closed bool
}

func newFake() *fake { return &fake{exited: make(chan struct{})} }

func (f *fake) Exited() <-chan struct{} { return f.exited }
func (f *fake) How() string             { return "exit status 7" }

func (f *fake) Close(context.Context) error {
	f.closed = true
	close(f.exited)
	return nil
}

func half() float64 { return 0.5 }

func TestSupervisorRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*fake
		s := New(func(context.Context) (*fake, error) {
			if len(made) == 1 {
				made = append(made, nil)
				return nil, errors.New("no luck")
			}
			f := newFake()
			made = append(made, f)
			return f, nil
		}, Options{Random: half})
		begun := time.Now()
		first, err := s.Ready(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		close(first.exited)
		second, err := s.Ready(t.Context()) // at once: not the dead one
		if err != nil {
			t.Fatal(err)
		}
		if second == first || len(made) != 3 {
			t.Errorf("after the death: same instance %t, %d starts, want another after 3 starts", second == first, len(made))
		}
		if d, want := time.Since(begun), time.Second+1500*time.Millisecond; d != want {
			t.Errorf("two deaths took %s, want the delays of %s", d, want)
		}
		s.Close()
		if !second.closed {
			t.Error("Close left the instance running")
		}
		if _, err := s.Ready(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Ready after Close: %v, want %v", err, ErrClosed)
		}
	})
}

func TestSupervisorQuarantines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		s := New(func(context.Context) (*fake, error) {
			starts++
			return nil, errors.New("no luck")
		}, Options{Policy: Policy{Deaths: 4}, Random: half})
		_, err := s.Ready(t.Context())
		if !errors.Is(err, ErrQuarantined) || !strings.Contains(err.Error(), "no luck") || starts != 4 {
			t.Errorf("%v after %d starts, want %v with its cause after 4", err, starts, ErrQuarantined)
		}
		s.Reset()
		if _, err := s.Ready(t.Context()); !errors.Is(err, ErrQuarantined) || starts != 8 {
			t.Errorf("%v after %d starts, want %v after 4 more", err, starts, ErrQuarantined)
		}
		s.Close()
	})
}

func TestSupervisorGivesUpTheHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		s := New(func(context.Context) (*fake, error) {
			starts++
			return nil, ErrDigest
		}, Options{})
		if _, err := s.Ready(t.Context()); !errors.Is(err, ErrQuarantined) || !errors.Is(err, ErrDigest) || starts != 1 {
			t.Errorf("%v after %d starts, want %v and %v after one", err, starts, ErrQuarantined, ErrDigest)
		}
		s.Close()
	})
}

func TestSupervisorCloseDuringStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ignores := newFake()
		for _, start := range []func(context.Context) (*fake, error){
			func(ctx context.Context) (*fake, error) { <-ctx.Done(); return nil, ctx.Err() },
			func(context.Context) (*fake, error) { time.Sleep(time.Hour); return ignores, nil },
		} {
			s := New(start, Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := s.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Ready: %v, want %v", err, context.DeadlineExceeded)
			}
			cancel()
			s.Close()
		}
		if !ignores.closed {
			t.Error("an instance that came after the wish to end was not closed")
		}
	})
}
