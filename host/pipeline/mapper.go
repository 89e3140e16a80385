package pipeline

import (
	"context"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Mapper runs blocks through stages of its own, apart from any pipeline: what rows
// that were read for themselves become at a target. It is not safe for concurrent
// use.
type Mapper struct {
	chain *chain
	blk   batch.Block
}

// NewMapper returns a Mapper; the stages are its alone.
func NewMapper(stages []Stage) *Mapper { return &Mapper{chain: newChain("mappings", stages)} }

// Run returns the block after all stages, valid until the next call.
func (m *Mapper) Run(ctx context.Context, block []byte) (*batch.Block, error) {
	out, _, err := m.chain.run(ctx, block)
	if err != nil {
		return nil, err
	}
	return &m.blk, m.blk.Decode(out, m.chain.last(), batch.Limits{})
}
