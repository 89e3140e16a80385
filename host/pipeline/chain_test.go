package pipeline

import (
	"context"
	"testing"

	"github.com/datalink-go/datalink/sdk/batch"
)

type forgetful struct{ resets int }

func (f *forgetful) Schema(_ context.Context, s *batch.Schema) (*batch.Schema, error) { return s, nil }

func (f *forgetful) Apply(_ context.Context, block []byte, _ []uint32) ([]byte, error) {
	return block, nil
}

func (f *forgetful) Reset() { f.resets++ }

// TestStagesForget: after each opening of the reader a stage's schema ids are
// those of the new stream.
func TestStagesForget(t *testing.T) {
	f := &forgetful{}
	for want := 1; want <= 2; want++ {
		newChain("transform", []Stage{f})
		if f.resets != want {
			t.Fatalf("after %d openings: %d resets, want %d", want, f.resets, want)
		}
	}
}
