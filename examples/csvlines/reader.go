package main

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"os"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Config are the options of the reader.
type Config struct {
	File  string `config:"file" required:"true" doc:"the CSV file; its first line names the columns, the first of them is the key"`
	Table string `config:"table" default:"lines" doc:"name of the table"`
}

// reader implements sdk.Reader. A position is an offset in the file.
type reader struct {
	sdk.Numbers // all calls about positions
	cfg         Config

	points sdk.NumberPoints
	file   *os.File
	base   uint64 // offset at which lines begins
	lines  *csv.Reader
	schema *batch.Schema
}

var _ sdk.Reader = (*reader)(nil)

func open(_ sdk.Env, cfg Config) (*reader, error) {
	return &reader{Numbers: sdk.Numbers{Format: "csv-offset", Unit: "byte"}, cfg: cfg}, nil
}

// Check implements sdk.Connector.
func (r *reader) Check(context.Context) ([]sdk.Finding, error) {
	f, err := os.Open(r.cfg.File)
	if err != nil {
		return []sdk.Finding{{Severity: sdk.Error, Subject: r.cfg.File, Message: err.Error(), Advice: "name a CSV file that can be read"}}, nil
	}
	return nil, f.Close()
}

// Open implements sdk.Reader: it begins at the least of the points.
func (r *reader) Open(ctx context.Context, _ sdk.Execution, points []sdk.Point, _ []batch.StateItem) (err error) {
	if r.points, err = r.Points(points); err != nil {
		return err
	}
	if err := r.Close(ctx); err != nil { // a reader may be opened again
		return err
	}
	if r.file, err = os.Open(r.cfg.File); err != nil {
		return sdk.Faultf(sdk.CodeUnavailable, "%v", err)
	}
	r.lines = csv.NewReader(r.file)
	names, err := r.lines.Read()
	if err != nil {
		return sdk.Faultf(sdk.CodeCorruptSource, "first line of %s: %v", r.cfg.File, err)
	}
	r.schema = &batch.Schema{ID: 1, Table: r.cfg.Table, Key: []int{0}, PrimaryKey: true}
	for i, name := range names {
		c := batch.Column{Name: name, Type: batch.String}
		if i > 0 {
			c.Flags = batch.Nullable
		}
		r.schema.Columns = append(r.schema.Columns, c)
	}
	return r.seek(max(r.points.Start(), uint64(r.lines.InputOffset())))
}

func (r *reader) seek(offset uint64) error {
	st, err := r.file.Stat()
	if err != nil {
		return err
	}
	if offset > uint64(st.Size()) {
		return sdk.Faultf(sdk.CodePositionUnknown, "%s has %d bytes, the position is byte %d", r.cfg.File, st.Size(), offset).
			Suggest("restore the file, or set another position")
	}
	if _, err := r.file.Seek(int64(offset), io.SeekStart); err != nil {
		return err
	}
	r.base, r.lines = offset, csv.NewReader(r.file)
	r.lines.FieldsPerRecord = len(r.schema.Columns)
	return nil
}

// Next implements sdk.Reader: lines until the block is full. The file has an end;
// a source that goes on would wait here while out is empty, until ctx ends.
func (r *reader) Next(ctx context.Context, out *batch.Builder) error {
	for !out.Full() && ctx.Err() == nil {
		from := r.base + uint64(r.lines.InputOffset())
		fields, err := r.lines.Read()
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return sdk.Faultf(sdk.CodeCorruptSource, "%s after byte %d: %v", r.cfg.File, from, err)
		}
		if err := r.line(out, fields, from, r.base+uint64(r.lines.InputOffset())); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// line appends one line as a transaction of its own. Points that lie behind it hold
// it already; the host leaves it out for them.
func (r *reader) line(out *batch.Builder, fields []string, from, to uint64) error {
	if err := out.BeginTx(batch.Tx{Begins: true, Covers: r.points.Covers(nil, from, to)}); err != nil {
		return err
	}
	if err := out.BeginRow(batch.Insert, r.schema); err != nil {
		return err
	}
	out.BeginImage(batch.AfterImage)
	for i, v := range fields {
		if v == "" && i > 0 {
			out.PutNull()
		} else {
			out.PutString(v)
		}
	}
	out.EndImage()
	if err := out.EndRow(); err != nil {
		return err
	}
	return out.EndTx(true, nil, r.Source(to))
}

// Durable implements sdk.Reader: there is nothing to prune.
func (*reader) Durable(context.Context, sdk.Position) error { return nil }

// Close implements sdk.Connector.
func (r *reader) Close(context.Context) error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}
