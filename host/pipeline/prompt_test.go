package pipeline

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datalink-go/datalink/sdk"
)

// waiting is a source that waits until it knows that all is stored.
type waiting struct {
	*fakeSource
	want sdk.Position
	told chan struct{}
	once *sync.Once
}

func (s waiting) Durable(ctx context.Context, p sdk.Position) error {
	err := s.fakeSource.Durable(ctx, p)
	if samePosition(p, s.want) {
		s.once.Do(func() { close(s.told) })
	}
	return err
}

func TestSourcesThatWaitAreToldAtOnce(t *testing.T) {
	for _, prompt := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := numbered(5, 2)
			s := waiting{&fakeSource{h: h, perRead: 2, hold: make(chan struct{})}, pos(5), make(chan struct{}), new(sync.Once)}
			cfg := configOf(s.fakeSource, writerOf("w", newTarget()))
			cfg.Reader, cfg.Stop = ReaderConfig{Source: s, Prompt: prompt}, s.told
			began := time.Now()
			if _, err := Run(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); (took < time.Second) != prompt {
				t.Errorf("prompt %v: told after %s", prompt, took)
			}
		})
	}
}
