package reader

import (
	"errors"
	"fmt"
	"io"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk"
)

// span is where a prepared transaction lies in the log.
type span struct {
	file     int
	from, to int64
	bounds   binlog.Bounds
}

// prepared notes the prepared transaction that is next and passes over it: its
// rows are delivered where it is committed.
func (r *Reader) prepared() error {
	from := r.scan.Offset()
	var ev binlog.Event
	for r.scan.Offset() < r.tx.bounds.End {
		if err := r.scan.Next(&ev); err != nil {
			return err
		}
		if ev.Type == binlog.XAPrepare {
			id, _, err := binlog.AppendXID(nil, ev.Body)
			if err != nil {
				return err
			}
			b := r.tx.bounds
			b.Undone = append([]binlog.Interval(nil), b.Undone...)
			r.xa[xid(id)] = span{r.file, from, r.scan.Offset(), b}
		}
	}
	r.here.off = r.scan.Offset()
	r.tx.passed = true
	return nil
}

// commitPrepared reads the rows of a prepared transaction in the place of its
// XA COMMIT. Reading may have begun after the prepare: then the files before are
// searched for it.
func (r *Reader) commitPrepared(arg []byte) error {
	id := xid(arg)
	if r.live != nil {
		return r.commitLive(id)
	}
	sp, ok := r.xa[id]
	if !ok {
		var err error
		if sp, ok, err = r.findPrepared(id); err != nil {
			return err
		}
	}
	if !ok {
		return sdk.Faultf(sdk.CodePositionPurged, "%s at offset %d: XA COMMIT %s, and its prepared part is in none of the files", r.scan.Name(), r.ev.At, arg).
			Suggest("add the files before, back to the one with XA PREPARE; or take the tables anew and set a later position")
	}
	delete(r.xa, id)
	f := &r.files[sp.file]
	src, format, _, err := openFormat(f, int(r.cfg.MaxEvent))
	if err != nil {
		return err
	}
	_ = src.Close()
	if src, err = f.OpenAt(sp.from); err != nil {
		return err
	}
	scan := binlog.NewScanner(f.Name(), src, sp.from, format, int(r.cfg.MaxEvent))
	r.levels = append(r.levels, level{scan: scan, until: sp.to, bounds: sp.bounds, prepared: true, close: func() { _ = src.Close() }})
	return nil
}

// findPrepared searches the log before the present place, the latest match wins.
func (r *Reader) findPrepared(id string) (found span, ok bool, err error) {
	for i := r.file; i >= 0 && !ok; i-- {
		found, ok, err = r.preparedIn(i, id)
		if err != nil {
			return found, false, err
		}
	}
	return found, ok, nil
}

func (r *Reader) preparedIn(i int, id string) (found span, ok bool, err error) {
	f := &r.files[i]
	src, format, end, err := openFormat(f, int(r.cfg.MaxEvent))
	if err != nil {
		return found, false, err
	}
	_ = src.Close()
	if src, err = f.OpenAt(end); err != nil {
		return found, false, err
	}
	defer src.Close()
	s := binlog.NewScanner(f.Name(), src, end, format, int(r.cfg.MaxEvent))
	var x binlog.Indexer
	again := func(at int64) (*binlog.Scanner, error) {
		far, err := f.OpenAt(at)
		if err != nil {
			return nil, err
		}
		return binlog.NewScanner(f.Name(), far, at, format, int(r.cfg.MaxEvent)), nil
	}
	for i < r.file || s.Offset() < r.here.off {
		var h binlog.Header
		if err := s.Peek(&h); err == io.EOF || errors.Is(err, binlog.ErrCut) {
			break
		} else if err != nil {
			return found, ok, err
		}
		if h.Type.Between() || !h.Type.Known() && h.Flags&binlog.FlagIgnorable != 0 {
			if err := s.Skip(&h); err != nil {
				return found, ok, err
			}
			continue
		}
		if err := binlog.Index(s, &x, again); err != nil {
			return found, ok, err
		}
		if x.Outcome == binlog.Cut || x.End <= s.Offset() {
			break
		}
		from := s.Offset()
		var ev binlog.Event
		for s.Offset() < x.End {
			if x.Outcome != binlog.Prepared {
				if err := s.Peek(&h); err != nil {
					return found, ok, err
				}
				if err := s.Skip(&h); err != nil {
					return found, ok, err
				}
				continue
			}
			if err := s.Next(&ev); err != nil {
				return found, ok, err
			}
			if ev.Type != binlog.XAPrepare {
				continue
			}
			name, _, err := binlog.AppendXID(nil, ev.Body)
			if err != nil {
				return found, ok, fmt.Errorf("%s: %w", s.Place(ev.At), err)
			}
			if xid(name) == id {
				b := x.Bounds
				b.Undone = append([]binlog.Interval(nil), b.Undone...)
				found, ok = span{i, from, x.End, b}, true
			}
		}
	}
	return found, ok, nil
}
