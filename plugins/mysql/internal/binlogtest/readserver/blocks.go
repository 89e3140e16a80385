package main

import (
	"context"
	"os"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/reader"
	snap "github.com/datalink-go/datalink/plugins/mysql/internal/snapshot"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// exact is how many blocks are decoded to count their rows. Events of other kinds
// come in the first ones; later blocks are counted as they are.
const exact = 8

// blocks opens a reader and calls f with each block and its rows until it is done.
func blocks(ctx context.Context, s *spec, start string, exact int, opened func(), f func(b *batch.Block, rows int) (done bool, err error)) error {
	cfg := reader.Config{
		Address: sdk.Strings{s.address}, User: "root", Start: start, DDL: "apply", OnUnknownTable: "stop", OnStatement: "stop", Heartbeat: time.Second,
		Snapshot: snap.Options{ChunkRows: 20000, Parallel: s.parallel, StatementTimeout: time.Minute},
	}
	if s.table != "" {
		cfg.Tables = sdk.Strings{s.table}
	}
	cfg.TLS.Mode = "disabled"
	r, err := reader.New(sdk.Env{}, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close(context.Background()) }()
	opened()
	if err := r.Open(ctx, sdk.Execution{Task: "bench"}, nil, nil); err != nil {
		return err
	}
	out := batch.NewBuilder(batch.Limits{})
	var b batch.Block
	reg := batch.NewRegistry()
	for n := 0; ; n++ {
		out.Reset()
		if err := r.Next(ctx, out); err != nil {
			return err
		}
		data, err := out.Finish()
		if err != nil {
			return err
		}
		rows := out.Len()
		if n < exact {
			if err := b.Decode(data, reg, batch.Limits{}); err != nil {
				return err
			}
			rows = 0
			for i := range b.Len() {
				var e batch.Event
				if err := b.Event(i, &e); err != nil {
					return err
				}
				if e.Kind.IsRow() {
					rows++
				}
			}
		}
		if done, err := f(&b, rows); done || err != nil {
			return err
		}
	}
}

func stream(ctx context.Context, s *spec, m *meter) error {
	first, rows := 0, 0
	return blocks(ctx, s, "position:"+s.file+":4", exact, func() {}, func(_ *batch.Block, n int) (bool, error) {
		if rows += n; first == 0 && rows > 0 {
			first = rows
			m.begin()
		}
		if rows < s.rows {
			return false, nil
		}
		m.end(rows - first)
		return true, nil
	})
}

func snapshot(ctx context.Context, s *spec, m *meter) error {
	rows := 0
	return blocks(ctx, s, "snapshot", exact, m.begin, func(_ *batch.Block, n int) (bool, error) {
		if rows += n; rows < s.rows {
			return false, nil
		}
		m.end(rows)
		return true, nil
	})
}

// latency says "ready" on stderr when what is written from then on will come.
func latency(ctx context.Context, s *spec, m *meter) error {
	var vals []batch.Value
	ready := false
	return blocks(ctx, s, "latest", 1<<62, m.begin, func(b *batch.Block, _ int) (bool, error) {
		if !ready {
			ready = true
			_, _ = os.Stderr.WriteString("ready\n")
		}
		now := time.Now().UnixNano()
		for i := range b.Len() {
			var e batch.Event
			if err := b.Event(i, &e); err != nil {
				return true, err
			}
			if e.Kind != batch.Insert {
				continue
			}
			var err error
			if vals, err = e.After.Values(vals); err != nil {
				return true, err
			}
			m.Took = append(m.Took, now-vals[1].Int64())
		}
		if len(m.Took) < s.rows {
			return false, nil
		}
		m.end(len(m.Took))
		return true, nil
	})
}
