package hopbench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datalink-go/datalink/host/supervisor"
)

// The ways of the rows.
const (
	packed  = "packed"
	single  = "single"  // one protobuf message a row
	batched = "batched" // the messages of a batch as one
)

// Result is what Measure found. CPU times are those of host and plugin together.
type Result struct {
	Batch                   int // rows of a batch
	Packed, Single, Batched Spread
	Ratio, BatchedRatio     Spread // of the rounds: Single and Batched to Packed
}

// Spread is a median with its neighbours: microseconds a row, or a ratio.
type Spread struct{ Min, Median, Max float64 }

// String returns the result as one line.
func (r Result) String() string {
	return fmt.Sprintf("hop, batches of %d: packed %.2f µs CPU a row (%.2f–%.2f), protobuf message a row %.2f (%.2f–%.2f): %.1f× (%.1f–%.1f); protobuf rows batched %.2f (%.2f–%.2f): %.1f× (%.1f–%.1f)",
		r.Batch, r.Packed.Median, r.Packed.Min, r.Packed.Max, r.Single.Median, r.Single.Min, r.Single.Max, r.Ratio.Median, r.Ratio.Min, r.Ratio.Max,
		r.Batched.Median, r.Batched.Min, r.Batched.Max, r.BatchedRatio.Median, r.BatchedRatio.Min, r.BatchedRatio.Max)
}

// Measure brings rows over by each way in turn, for that many rounds, each about
// as many rows as given. A disturbance of the machine thus meets all of them.
func Measure(ctx context.Context, rounds, rows, batch int) (Result, error) {
	res := Result{Batch: batch}
	img, err := self()
	if err != nil {
		return res, err
	}
	defer img.Close()
	launcher := supervisor.NewLauncher()
	defer launcher.Close()
	own, err := startPacked(ctx, launcher, img, batch)
	if err != nil {
		return res, err
	}
	defer own.close()
	other, err := startRival()
	if err != nil {
		return res, err
	}
	defer other.close()

	var all [3][]float64
	var ratios [2][]float64
	for i := range rounds + 1 {
		var us [3]float64
		var sums [3]uint64
		for k, run := range []func() (uint64, error){
			func() (uint64, error) { return own.run(ctx, rows) },
			func() (uint64, error) { return other.single(ctx, rows) },
			func() (uint64, error) { return other.batched(ctx, rows, batch) },
		} {
			pid := other.pid
			if k == 0 {
				pid = own.pid
			}
			before, err := cpu(pid)
			if err != nil {
				return res, err
			}
			if sums[k], err = run(); err != nil {
				return res, err
			}
			after, err := cpu(pid)
			if err != nil {
				return res, err
			}
			us[k] = float64((after - before).Nanoseconds()) / 1e3 / float64(rows)
		}
		if sums[0] != sums[1] || sums[0] != sums[2] {
			return res, fmt.Errorf("the ways brought other values: checksums %x", sums)
		}
		if i == 0 {
			continue // warm-up
		}
		for k := range all {
			all[k] = append(all[k], us[k])
		}
		ratios[0], ratios[1] = append(ratios[0], us[1]/us[0]), append(ratios[1], us[2]/us[0])
	}
	res.Packed, res.Single, res.Batched = spread(all[0]), spread(all[1]), spread(all[2])
	res.Ratio, res.BatchedRatio = spread(ratios[0]), spread(ratios[1])
	return res, nil
}

func spread(v []float64) Spread {
	slices.Sort(v)
	return Spread{v[0], v[len(v)/2], v[len(v)-1]}
}

// self returns this program as an image.
func self() (*supervisor.Image, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return supervisor.OpenImage(packed, path, hex.EncodeToString(sum[:]))
}

// cpu returns the CPU time of this process and of another; see
// clock_getcpuclockid(3) for the clock of a process.
func cpu(pid int) (time.Duration, error) {
	var sum time.Duration
	for _, clock := range []int32{unix.CLOCK_PROCESS_CPUTIME_ID, int32(^pid)<<3 | 2} {
		var t unix.Timespec
		if err := unix.ClockGettime(clock, &t); err != nil {
			return 0, fmt.Errorf("CPU clock %d: %w", clock, err)
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}
