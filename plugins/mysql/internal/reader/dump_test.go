package reader

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// samples are the folders with binary logs that tests read.
func samples(t testing.TB) (dirs []string) {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	shared := os.Getenv("DATALINK_SAMPLES")
	if shared == "" {
		shared = filepath.Join(root, "..", "shared", "binlogs")
	}
	for _, d := range []string{filepath.Join(root, "examples", "quickstart", "binlogs"), shared} {
		if _, err := os.Stat(d); err == nil {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// collect reads a log to its end and calls f for every event. It returns the
// error that ended it, nil for io.EOF.
func collect(t testing.TB, cfg Config, f func(tx *batch.Tx, e *batch.Event)) error {
	t.Helper()
	if cfg.Start == "" {
		cfg.Start = "earliest"
	}
	for _, d := range []struct {
		v *string
		s string
	}{{&cfg.DDL, "apply"}, {&cfg.OnUnknownTable, "stop"}, {&cfg.OnStatement, "stop"}} {
		if *d.v == "" {
			*d.v = d.s
		}
	}
	r, err := New(sdk.Env{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	defer r.Close(ctx)
	if err := r.Open(ctx, sdk.Execution{}, nil, nil); err != nil {
		return err
	}
	b := batch.NewBuilder(batch.Limits{})
	reg := batch.NewRegistry()
	for {
		b.Reset()
		end := r.Next(ctx, b)
		if !b.Empty() {
			data, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			var blk batch.Block
			if err := blk.Decode(data, reg, batch.Limits{}); err != nil {
				t.Fatal(err)
			}
			for i := range blk.Txs {
				tx := &blk.Txs[i]
				for k := range tx.Count {
					var e batch.Event
					if err := blk.Event(tx.First+k, &e); err != nil {
						t.Fatal(err)
					}
					f(tx, &e)
				}
			}
		}
		if end == io.EOF {
			return nil
		}
		if end != nil {
			return end
		}
	}
}

// null stands for NULL, which no text of a recording is.
const null = "\x00NULL"

// render writes a value in the notation of the expected tables.
func render(c *batch.Column, v *batch.Value) string {
	switch v.State {
	case batch.Null:
		return null
	case batch.Absent:
		return "<absent>"
	case batch.Unchanged:
		return "<unchanged>"
	case batch.Raw:
		name, data, _ := v.Raw()
		return fmt.Sprintf("<raw %s %X>", name, data)
	}
	var s string
	switch c.Type {
	case batch.Bytes, batch.Geometry, batch.Vector:
		s = strings.ToUpper(hex.EncodeToString(v.Bytes()))
	case batch.Bit:
		var n uint64
		for _, b := range v.Bytes() {
			n = n<<8 | uint64(b)
		}
		s = strconv.FormatUint(n, 10)
	case batch.Int8, batch.Int16, batch.Int32, batch.Int64:
		s = strconv.FormatInt(v.Int64(), 10)
	case batch.Bool, batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64:
		s = strconv.FormatUint(v.Uint64(), 10)
	case batch.Year:
		s = fmt.Sprintf("%04d", v.Uint64())
	case batch.Float32, batch.Float64:
		s = strconv.FormatFloat(v.Float64(), 'g', -1, 64)
	case batch.Date:
		s = string(batch.AppendDate(nil, int32(v.Int64())))
	case batch.Time:
		s = string(batch.AppendTime(nil, v.Int64(), int(c.Scale)))
	case batch.DateTime:
		s = string(batch.AppendDateTime(nil, v.Int64(), int(c.Scale)))
	case batch.Timestamp:
		s = string(batch.AppendTimestamp(nil, v.Int64(), int(c.Scale)))
	case batch.UUID:
		h := hex.EncodeToString(v.Bytes())
		s = h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	default:
		s = string(v.Bytes())
	}
	return s
}
