package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/datalink-go/datalink/examples/mask-go/mask"
	"github.com/datalink-go/datalink/host/wasmrt"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/proto/rowbench"
	"github.com/datalink-go/datalink/sdk/wasm"
	"github.com/datalink-go/datalink/sdk/wire"
)

const (
	maskConfig = `{"columns": ["shop.orders.name", "shop.orders.email"], "keep": 2}`
	maskRows   = 1024 // of a block
	maskBlocks = 40   // of a round
)

// MaskResult is what Masks found: times are nanoseconds of a row.
type MaskResult struct {
	Native   Spread
	Names    []string
	Time     []Spread
	ToNative []Spread // of the rounds: time to that of the native call
}

// String returns the result as lines.
func (r MaskResult) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "mask two columns of blocks of %d rows, native call %.0f ns a row (%.0f–%.0f)", maskRows, r.Native.Median, r.Native.Min, r.Native.Max)
	for i, name := range r.Names {
		fmt.Fprintf(&s, "\n  WASM module in %s, its process and the check of its result included: %.0f ns a row (%.0f–%.0f), ratio to native %s",
			name, r.Time[i].Median, r.Time[i].Min, r.Time[i].Max, r.ToNative[i])
	}
	return s.String()
}

// Masks transforms blocks by the same mask in turns: as native code, and as
// modules in Go and in Rust in the daemon's children. Root is the folder of the
// module, dir one for the compile cache.
func Masks(ctx context.Context, b *Built, root, dir string, rounds int) (MaskResult, error) {
	var res MaskResult
	in, s, err := maskBlock()
	if err != nil {
		return res, err
	}
	native, err := newNative(s)
	if err != nil {
		return res, err
	}
	want, err := native(in)
	if err != nil {
		return res, err
	}
	want = bytes.Clone(want)
	cache := filepath.Join(dir, "wasm")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return res, err
	}
	r, err := wasmrt.New(wasmrt.Config{CacheDir: cache, Exec: b.Daemon(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return res, err
	}
	defer r.Close()
	calls := []func([]byte) ([]byte, error){native}
	for _, m := range []struct{ name, path string }{{"Go", b.MaskGo()}, {"Rust", filepath.Join(root, "examples/mask-rust/mask.wasm")}} {
		module, err := openMask(ctx, r, m.path, s)
		if err != nil {
			return res, fmt.Errorf("module %s: %w", m.path, err)
		}
		defer module.Close(ctx)
		res.Names = append(res.Names, m.name)
		calls = append(calls, func(in []byte) ([]byte, error) { return module.Apply(ctx, in, []uint32{s.ID}) })
	}
	times, ratios := make([][]float64, len(calls)), make([][]float64, len(calls))
	for round := range rounds + 1 {
		var ns [3]float64
		for k, call := range calls {
			begun := time.Now()
			for range maskBlocks {
				got, err := call(in)
				if err != nil {
					return res, err
				}
				if len(got) != len(want) {
					return res, fmt.Errorf("way %d: a block of %d bytes, the native code makes %d", k, len(got), len(want))
				}
			}
			ns[k] = float64(time.Since(begun)) / maskBlocks / maskRows
			if round > 0 { // the first one warms up
				times[k], ratios[k] = append(times[k], ns[k]), append(ratios[k], ns[k]/ns[0])
			}
		}
		for k, call := range calls {
			if got, err := call(in); err != nil || !bytes.Equal(got, want) {
				return res, fmt.Errorf("way %d makes another block than the native code: %w", k, err)
			}
		}
	}
	res.Native = spread(times[0])
	for k := range res.Names {
		res.Time, res.ToNative = append(res.Time, spread(times[k+1])), append(res.ToNative, spread(ratios[k+1]))
	}
	return res, nil
}

// maskBlock returns a block and the schema of its rows.
func maskBlock() ([]byte, *batch.Schema, error) {
	rows := rowbench.NewRows(maskRows)
	b := batch.NewBuilder(batch.Limits{})
	if err := b.BeginTx(batch.Tx{Begins: true, ID: "a:1"}); err != nil {
		return nil, nil, err
	}
	for i := range maskRows {
		if err := rows.Append(b, i); err != nil {
			return nil, nil, err
		}
	}
	if err := b.EndTx(true, nil, []byte("p")); err != nil {
		return nil, nil, err
	}
	data, err := b.Finish()
	if err != nil {
		return nil, nil, err
	}
	data = bytes.Clone(data)
	reg := batch.NewRegistry()
	var block batch.Block
	if err := block.Decode(data, reg, batch.Limits{}); err != nil {
		return nil, nil, err
	}
	return data, reg.Get(block.Definitions()[0]), nil
}

// newNative returns the transform of mask-go as a call of this program.
func newNative(s *batch.Schema) (func([]byte) ([]byte, error), error) {
	m, methods := wasm.New(mask.Plugin()), wire.Methods()
	call := func(method string, q, a wire.Message) error {
		i := slices.IndexFunc(methods, func(m wire.Method) bool { return m.Name == method })
		return wire.DecodeReply(m.Call(methods[i].ID, q.Append(nil)), a)
	}
	var c wire.ConfigureReply
	if err := call(wire.Configure, &wire.ConfigureRequest{Role: "transform", Config: []byte(maskConfig)}, &c); err != nil {
		return nil, err
	}
	if len(c.Problems) > 0 {
		return nil, fmt.Errorf("configuration of the mask: %v", c.Problems)
	}
	if err := call(wire.TransformSchema, &wire.SchemaRequest{Schema: batch.AppendSchema(nil, s)}, &wire.SchemaReply{}); err != nil {
		return nil, err
	}
	return func(block []byte) ([]byte, error) {
		var a wire.TransformReply
		err := call(wire.ApplyTransform, &wire.TransformRequest{Block: block, Schemas: []uint64{uint64(s.ID)}}, &a)
		return a.Block, err
	}, nil
}

func openMask(ctx context.Context, r *wasmrt.Runtime, path string, s *batch.Schema) (*wasmrt.Module, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	m, err := r.Open(wasmrt.ModuleConfig{Name: "mask", Binary: data, SHA256: hex.EncodeToString(sum[:])})
	if err != nil {
		return nil, err
	}
	a, err := m.Configure(ctx, &wire.ConfigureRequest{Role: "transform", Task: "bench", Name: "mask", Config: []byte(maskConfig)})
	if err == nil && len(a.Problems) > 0 {
		err = fmt.Errorf("configuration of the mask: %v", a.Problems)
	}
	if err == nil {
		_, err = m.Schema(ctx, s)
	}
	if err != nil {
		_ = m.Close(ctx)
		return nil, err
	}
	return m, nil
}
