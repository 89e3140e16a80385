package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/proto/rowbench"
)

// AllocationsResult is what Allocations found, for one row.
type AllocationsResult struct {
	Batch          int
	Encode, Decode float64 // of the codec
	Log            float64 // of the connector that decodes a binary log into blocks
}

// String returns the result as one line.
func (r AllocationsResult) String() string {
	return fmt.Sprintf("allocations a row, batches of %d: encode %.5f, decode and read every value %.5f, binary log into blocks %.5f", r.Batch, r.Encode, r.Decode, r.Log)
}

// Allocations counts those of codec and decoder in a steady state, without any
// transport. The decoder reads the file in a process of its own.
func Allocations(ctx context.Context, b *Built, file string, batches, size int) (AllocationsResult, error) {
	res, err := codecAllocations(batches, size)
	if err != nil {
		return res, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(b.Dir, "readlog"), file).Output()
	if err != nil {
		return res, fmt.Errorf("readlog %s: %w", file, err)
	}
	var log struct{ AllocationsPerRow float64 }
	err = json.Unmarshal(out, &log)
	res.Log = log.AllocationsPerRow
	return res, err
}

func codecAllocations(batches, size int) (AllocationsResult, error) {
	res := AllocationsResult{Batch: size}
	rows := rowbench.NewRows(size)
	b := batch.NewBuilder(batch.Limits{})
	encode := func() ([]byte, error) {
		b.Reset()
		if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
			return nil, err
		}
		for i := range size {
			if err := rows.Append(b, i); err != nil {
				return nil, err
			}
		}
		if err := b.EndTx(true, nil, nil); err != nil {
			return nil, err
		}
		return b.Finish()
	}
	count := func(f func() error) (float64, error) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range batches {
			if err := f(); err != nil {
				return 0, err
			}
		}
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / float64(batches*size), nil
	}
	data, err := encode() // grows the buffers, and has the schema
	if err != nil {
		return res, err
	}
	if _, err := rows.ReadBlock(data); err != nil {
		return res, err
	}
	if res.Encode, err = count(func() error { var err error; data, err = encode(); return err }); err != nil {
		return res, err
	}
	res.Decode, err = count(func() error { _, err := rows.ReadBlock(data); return err })
	return res, err
}
