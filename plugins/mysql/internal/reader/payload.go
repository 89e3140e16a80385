package reader

import (
	"bytes"
	"fmt"
	"io"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk/batch"
)

// payload opens the inside of a compressed transaction. How it
// ends is found by inflating it once before.
func (r *Reader) payload(ev *binlog.Event) error {
	var p binlog.Payload
	if err := binlog.DecodePayload(ev.Body, &p); err != nil {
		return err
	}
	if r.zstd == nil {
		d, err := binlog.NewDecompressor(int(r.cfg.MaxWindow))
		if err != nil {
			return err
		}
		r.zstd = d
	}
	format := r.scan.Format
	format.Checksum = false // of the payload as a whole
	name := fmt.Sprintf("%s at offset %d, inside of the compressed transaction", r.scan.Name(), ev.At)
	open := func() (*binlog.Scanner, error) {
		in, err := r.zstd.Open(bytes.NewReader(p.Data))
		if err != nil {
			return nil, err
		}
		return binlog.NewScanner(name, in, 0, format, int(r.cfg.MaxEvent)), nil
	}
	first, err := open()
	if err != nil {
		return err
	}
	var x binlog.Indexer
	if err := binlog.IndexAll(first, &x); err != nil {
		return err
	}
	if x.Outcome == binlog.Cut {
		return fmt.Errorf("%w: %w", binlog.ErrCorrupt, x.Err)
	}
	if x.Outcome == binlog.Rollback {
		r.tx.bounds.Outcome = binlog.Rollback
	}
	scan, err := open()
	if err != nil {
		return err
	}
	r.levels = append(r.levels, level{scan: scan, until: -1, bounds: x.Bounds, close: func() {}})
	return nil
}

// inside reads the next event of the innermost level.
func (r *Reader) inside(l *level, out *batch.Builder) error {
	var ev binlog.Event
	err := io.EOF
	if l.until < 0 || l.scan.Offset() < l.until {
		err = l.scan.Next(&ev)
	}
	if err == io.EOF {
		l.close()
		r.levels = r.levels[:len(r.levels)-1]
		return r.finish(out)
	}
	if err != nil {
		return err
	}
	return r.event(out, &ev, &l.bounds)
}
