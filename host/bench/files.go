package bench

import (
	"context"
	"fmt"
)

// FilesResult is what Files found.
type FilesResult struct {
	Rows             uint64
	Here, Rival      Spread // rows a second
	HereCPU          Spread // CPU seconds for a million rows
	RivalCPU         Spread
	Speed, CPU       Spread // of the rounds: rows a second to the rival's, its CPU time to ours
	Checked          Spread // rows a second to those of the rival that checks checksums too
	RivalChecked     Spread
	CheckedCPU       Spread
	RivalCheckedCPUs Spread
}

// String returns the result as lines.
func (r FilesResult) String() string {
	return fmt.Sprintf(`file → decode → plugin process → host → null writer, which reads and sums up every value; %d rows in transactions of 10:
  rows/s %.0f (%.0f–%.0f), CPU-s a million rows %s
go-mysql ParseReader of the same file, decoding only:
  rows/s %.0f (%.0f–%.0f), CPU-s a million rows %s
  ratio of rows/s %s, of CPU time %s
go-mysql with checksums checked, as the connector does:
  rows/s %.0f (%.0f–%.0f), CPU-s a million rows %s
  ratio of rows/s %s, of CPU time %s`,
		r.Rows, r.Here.Median, r.Here.Min, r.Here.Max, r.HereCPU,
		r.Rival.Median, r.Rival.Min, r.Rival.Max, r.RivalCPU, r.Speed, r.CPU,
		r.RivalChecked.Median, r.RivalChecked.Min, r.RivalChecked.Max, r.RivalCheckedCPUs, r.Checked, r.CheckedCPU)
}

// Files reads a file by each way in turn, for that many rounds: by the connector
// as a process with the host's pipeline and its null writer, and by go-mysql's
// ParseReader as it comes and with checksums checked.
func Files(ctx context.Context, rounds int, plugin, file string) (FilesResult, error) {
	var res FilesResult
	ways := []string{"pipeline", "gomysql", "gomysql-checked"}
	var speed, cpu [3][]float64
	var faster, checked, cheaper, cheaperChecked []float64
	for i := range rounds + 1 {
		var got [3]Reading
		for k, way := range ways {
			var err error
			if got[k], err = readIn(ctx, way, plugin, file); err != nil {
				return res, err
			}
			if got[k].Rows != got[0].Rows || got[0].Values != 20*got[0].Rows {
				return res, fmt.Errorf("%s: %d rows by %s, %d rows and %d values by %s", file, got[k].Rows, way, got[0].Rows, got[0].Values, ways[0])
			}
		}
		if i == 0 {
			continue // warm-up
		}
		n := float64(got[0].Rows)
		for k := range ways {
			speed[k] = append(speed[k], n/got[k].Seconds)
			cpu[k] = append(cpu[k], got[k].CPU/n*1e6)
		}
		faster, checked = append(faster, got[1].Seconds/got[0].Seconds), append(checked, got[2].Seconds/got[0].Seconds)
		cheaper, cheaperChecked = append(cheaper, got[1].CPU/got[0].CPU), append(cheaperChecked, got[2].CPU/got[0].CPU)
		res.Rows = got[0].Rows
	}
	res.Here, res.Rival, res.RivalChecked = spread(speed[0]), spread(speed[1]), spread(speed[2])
	res.HereCPU, res.RivalCPU, res.RivalCheckedCPUs = spread(cpu[0]), spread(cpu[1]), spread(cpu[2])
	res.Speed, res.Checked, res.CPU, res.CheckedCPU = spread(faster), spread(checked), spread(cheaper), spread(cheaperChecked)
	return res, nil
}
