// Command ticker is a reader for tests whose source never ends: in each interval one
// transaction with the next number n. It inserts n into ticks and gives row n mod 16
// of state the value n, so that a target shows what it lost and what was written
// late. What comes after a position is the same whoever reads it.
package main

import (
	"context"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/serve"
)

// Config are the options of the reader.
type Config struct {
	Every string `config:"every" default:"10ms" doc:"interval of the inserts; 0 = none at all"`
}

// reader implements sdk.Reader. A position is the number of the last insert.
type reader struct {
	sdk.Numbers
	every  time.Duration
	points sdk.NumberPoints
	next   uint64
	begun  time.Time
	first  uint64
	schema *batch.Schema // of ticks
	state  *batch.Schema
}

// Keys is the number of rows of state.
const keys = 16

func open(_ sdk.Env, cfg Config) (*reader, error) {
	d, err := time.ParseDuration(cfg.Every)
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "every: %v", err)
	}
	return &reader{Numbers: sdk.Numbers{Format: "tick", Unit: "tick"}, every: d}, nil
}

func (r *reader) Check(context.Context) ([]sdk.Finding, error) { return nil, nil }

func (r *reader) Open(_ context.Context, _ sdk.Execution, points []sdk.Point, _ []batch.StateItem) (err error) {
	if r.points, err = r.Points(points); err != nil {
		return err
	}
	r.next = r.points.Start() + 1
	r.begun, r.first = time.Now(), r.next
	r.schema = &batch.Schema{ID: 1, Table: "ticks", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{{Name: "n", Type: batch.Int64}, {Name: "at", Type: batch.Int64}}}
	r.state = &batch.Schema{ID: 2, Table: "state", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{{Name: "k", Type: batch.Int64}, {Name: "n", Type: batch.Int64}}}
	return nil
}

func (r *reader) Next(ctx context.Context, out *batch.Builder) error {
	if r.every == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	due := r.begun.Add(time.Duration(r.next-r.first) * r.every)
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	for !out.Full() && !time.Now().Before(due) {
		if err := r.tick(out); err != nil {
			return err
		}
		due = due.Add(r.every)
	}
	return nil
}

func (r *reader) tick(out *batch.Builder) error {
	n := r.next
	r.next++
	if err := out.BeginTx(batch.Tx{Begins: true, Covers: r.points.Covers(nil, n-1, n)}); err != nil {
		return err
	}
	if err := row(out, r.schema, int64(n), time.Now().UnixMilli()); err != nil {
		return err
	}
	if err := row(out, r.state, int64(n%keys), int64(n)); err != nil {
		return err
	}
	return out.EndTx(true, nil, r.Source(n))
}

func row(out *batch.Builder, s *batch.Schema, values ...int64) error {
	if err := out.BeginRow(batch.Insert, s); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
	for _, v := range values {
		out.PutInt(v)
	}
	out.EndImage()
	return out.EndRow()
}

func (*reader) Durable(context.Context, sdk.Position) error { return nil }

func (*reader) Close(context.Context) error { return nil }

func main() {
	serve.Main(sdk.Plugin{Name: "ticker", Version: "1.0.0", Summary: "inserts for ever", Reader: sdk.ReaderOf(open)})
}
