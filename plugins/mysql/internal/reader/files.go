package reader

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// lookahead is a second view of the open file, for transactions that are larger
// than what is buffered. It only moves ahead, so that a compressed file is
// inflated at most twice.
type lookahead struct {
	src  *binlog.Source
	scan *binlog.Scanner
	file int
}

func (l *lookahead) close() {
	if l.src != nil {
		_ = l.src.Close()
		l.src = nil
	}
}

// far gives a scanner at an offset of the open file.
func (r *Reader) far(at int64) (*binlog.Scanner, error) {
	l := &r.ahead
	if l.src != nil && (l.file != r.file || l.scan.Offset() > at) {
		l.close()
	}
	if l.src == nil {
		src, err := r.files[r.file].OpenAt(at)
		if err != nil {
			return nil, err
		}
		l.src, l.file = src, r.file
		if l.scan == nil {
			l.scan = binlog.NewScanner(r.scan.Name(), src, at, r.scan.Format, int(r.cfg.MaxEvent))
		} else {
			l.scan.Reset(r.scan.Name(), src, at, r.scan.Format)
		}
		return l.scan, nil
	}
	for l.scan.Offset() < at {
		var h binlog.Header
		if err := l.scan.Peek(&h); err != nil {
			return nil, err
		}
		if err := l.scan.Skip(&h); err != nil {
			return nil, err
		}
	}
	if l.scan.Offset() != at {
		return nil, fmt.Errorf("%w: %s: an event ends at %d, not at %d", binlog.ErrCorrupt, r.scan.Name(), l.scan.Offset(), at)
	}
	return l.scan, nil
}

func (r *Reader) closeFiles() {
	r.ahead.close()
	for i := range r.levels {
		r.levels[i].close()
	}
	r.levels = r.levels[:0]
	if r.src != nil {
		_ = r.src.Close()
		r.src = nil
	}
}

// errBeyond is wrapped when a file is shorter than the offset that was asked for.
var errBeyond = errors.New("the offset is beyond the file's end")

// openFile opens the i-th file and reads its format; the next event is that at
// offset at, or the first when at is 0.
func (r *Reader) openFile(i int, at int64) error {
	if r.src != nil {
		_ = r.src.Close()
		r.src = nil
	}
	f := &r.files[i]
	src, format, first, err := openFormat(f, int(r.cfg.MaxEvent))
	if err != nil {
		return err
	}
	_ = src.Close()
	at = max(at, first)
	if src, err = f.OpenAt(at); errors.Is(err, binlog.ErrCut) {
		return fmt.Errorf("%w: %w", errBeyond, err)
	} else if err != nil {
		return err
	}
	r.file, r.src = i, src
	if r.scan == nil {
		r.scan = binlog.NewScanner(f.Name(), src, at, format, int(r.cfg.MaxEvent))
	} else {
		r.scan.Reset(f.Name(), src, at, format)
	}
	r.here = place{
		base: f.Base, number: f.Number, digits: f.Digits, off: at,
		known: true, server: format.ServerID, created: format.Created,
	}
	r.tables.forget()
	return nil
}

// openFormat reads the format description that a file begins with; the source
// is somewhere behind it.
func openFormat(f *binlog.File, limit int) (src *binlog.Source, format binlog.Format, end int64, err error) {
	if src, err = f.OpenAt(4); err != nil {
		return nil, format, 0, err
	}
	s := binlog.NewScanner(f.Name(), src, 4, format, limit)
	var ev binlog.Event
	if err = s.Next(&ev); err == nil && ev.Type != binlog.FormatDescription {
		err = fmt.Errorf("%w: %s begins with a %s event, expected FORMAT_DESCRIPTION", binlog.ErrCorrupt, f.Path, ev.Type)
	}
	if err == io.EOF {
		err = fmt.Errorf("%w: %s holds no event", binlog.ErrCut, f.Path)
	}
	if err != nil {
		_ = src.Close()
		return nil, format, 0, err
	}
	return src, s.Format, ev.End, nil
}

// openAt opens the log at a place and restores the layouts of tables there.
func (r *Reader) openAt(ctx context.Context, from *place, state []batch.StateItem) error {
	first, last := &r.files[0], &r.files[len(r.files)-1]
	if from.base != first.Base {
		return sdk.Faultf(sdk.CodePositionUnknown, "position %s is of log %q, files names log %q", from, from.base, first.Base).Suggest("name the files of the log that was read before")
	}
	if from.number < first.Number {
		return sdk.Faultf(sdk.CodePositionPurged, "position %s: the first file that is there is %s", from, first.Name()).Suggest("restore the file, or set another position on purpose")
	}
	if from.number > last.Number {
		return sdk.Faultf(sdk.CodePositionUnknown, "position %s: the last file that is there is %s", from, last.Name()).Suggest("add the files that were read before")
	}
	i := int(from.number - first.Number)
	if err := r.openFile(i, from.off); err != nil {
		if errors.Is(err, errBeyond) {
			return sdk.Faultf(sdk.CodePositionUnknown, "position %s: %v", from, err).Suggest("use the whole file that was read before")
		}
		return r.fault(err)
	}
	if !from.sameLog(&r.here) {
		return sdk.Faultf(sdk.CodePositionUnknown, "position %s was taken from another file than the %s that is there (server id %d, created %d)", from, r.here.String(), r.here.server, r.here.created).Suggest("use the file that was read before")
	}
	return r.restore(ctx, state)
}

// nextFile goes on to the file after the open one, or ends.
func (r *Reader) nextFile() error {
	if r.file+1 == len(r.files) {
		return io.EOF
	}
	if err := r.openFile(r.file+1, 0); err != nil {
		return err
	}
	// The place after the last transaction of a file and the first of the next
	// are the same; positions name the former until something happened in the latter.
	return nil
}

// last finds the end of the last whole transaction of the log.
func (r *Reader) last(ctx context.Context) (place, error) {
	if err := r.openFile(len(r.files)-1, 0); err != nil {
		return place{}, r.fault(err)
	}
	var x binlog.Indexer
	for ctx.Err() == nil {
		var h binlog.Header
		if err := r.scan.Peek(&h); err != nil {
			break
		}
		if h.Type.Between() || !h.Type.Known() && h.Flags&binlog.FlagIgnorable != 0 {
			if err := r.scan.Skip(&h); err != nil {
				return place{}, r.fault(err)
			}
			continue
		}
		if err := binlog.Index(r.scan, &x, r.far); err != nil {
			return place{}, r.fault(err)
		}
		if x.Outcome == binlog.Cut {
			break
		}
		for r.scan.Offset() < x.End {
			if err := r.scan.Peek(&h); err != nil {
				return place{}, r.fault(err)
			}
			if err := r.scan.Skip(&h); err != nil {
				return place{}, r.fault(err)
			}
		}
	}
	p := r.here
	p.off = r.scan.Offset()
	return p, ctx.Err()
}

// fault gives an error the code by which the host decides.
func (r *Reader) fault(err error) error {
	if err == nil || err == io.EOF || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var f *sdk.Fault
	if errors.As(err, &f) {
		return f
	}
	code, advice := sdk.CodeInternal, ""
	for _, c := range faults {
		if errors.Is(err, c.is) {
			code, advice = c.code, c.advice
			break
		}
	}
	if code == sdk.CodeInternal && errors.Is(err, server.ErrBroken) {
		return sdk.Faultf(sdk.CodeUnavailable, "%v", err).Suggest("see whether the server runs and can be reached").Retry()
	}
	f = sdk.Faultf(code, "%v", err)
	f.Suggestion = advice
	return f
}
