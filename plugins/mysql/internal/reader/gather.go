package reader

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// gatherInMemory is the size up to which a transaction is held in memory until its
// end has come. A larger one goes to a file that has no name.
const gatherInMemory = 8 << 20

// gather takes a transaction from a stream until its end has come. It can be left
// where nothing more has arrived, and goes on from there.
type gather struct {
	index  binlog.Indexer
	ahead  binlog.Ahead
	on     bool
	spool  *spool
	copied binlog.Header // of the event that is being copied
	dir    string        // of spools; "" = that of the system
}

// spool is a transaction in a file.
type spool struct {
	f    *os.File
	w    *bufio.Writer
	from int64 // offset of its first byte in the log
	size int64
}

func newSpool(dir string, from int64) (*spool, error) {
	f, err := os.CreateTemp(dir, "datalink-transaction-*")
	if err != nil {
		return nil, fmt.Errorf("file for a large transaction: %w", err)
	}
	_ = os.Remove(f.Name()) // it lives as long as it is open, whatever happens to us
	return &spool{f: f, w: bufio.NewWriterSize(f, 256<<10), from: from}, nil
}

func (s *spool) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.size += int64(n)
	if err != nil {
		err = fmt.Errorf("%w: file for a large transaction: %w", errSpool, err)
	}
	return n, err
}

// errSpool is wrapped where the local disk does not take a large transaction.
var errSpool = errors.New("no room")

func (s *spool) close() {
	if s != nil {
		_ = s.f.Close()
	}
}

// at opens the spool at an offset of the log.
func (s *spool) at(off int64) io.Reader { return io.NewSectionReader(s.f, off-s.from, 1<<62) }

func (g *gather) reset() {
	g.spool.close()
	g.spool, g.on, g.copied = nil, false, binlog.Header{}
}

// next goes on with the transaction that begins at the next event of s. It returns
// nil when its end has come: then the transaction is what s has buffered next or,
// where g.spool is set, in the spool, and s is behind it.
func (g *gather) next(s *binlog.Scanner) error {
	if !g.on {
		g.on = true
		g.index.Reset()
		if err := s.Ahead(&g.ahead); err != nil {
			return err
		}
	}
	if g.spool == nil {
		done, err := g.look(s)
		if done || err != nil {
			return err
		}
		// Too large. It is taken from its beginning again, event by event.
		g.index.Reset()
		if g.spool, err = newSpool(g.dir, s.Offset()); err != nil {
			return err
		}
	}
	if err := g.store(s); err != nil {
		return err
	}
	if err := g.spool.w.Flush(); err != nil {
		return fmt.Errorf("%w: file for a large transaction: %w", errSpool, err)
	}
	return nil
}

// look looks for the end in what has arrived; it reports false where that is too
// much to hold.
func (g *gather) look(s *binlog.Scanner) (done bool, err error) {
	var ev binlog.Event
	for {
		switch err := g.ahead.Next(&ev); {
		case err == nil:
			done, err := g.index.Step(&ev)
			if err != nil {
				return false, fmt.Errorf("%s: %w", s.Place(ev.At), err)
			}
			if done {
				return true, nil
			}
			continue
		case s.Buffered() >= gatherInMemory:
			return false, nil
		}
		if err := g.ahead.Control(); err != nil {
			return false, err
		}
		if err := s.More(); err != nil {
			return false, err
		}
	}
}

func (g *gather) store(s *binlog.Scanner) error {
	for {
		var ev binlog.Event
		if g.copied.Size == 0 {
			if err := s.Peek(&ev.Header); err != nil {
				return err
			}
			if ev.Size <= gatherInMemory || binlog.Wants(ev.Type) {
				if err := s.Next(&ev); err != nil {
					return err
				}
				if _, err := g.spool.Write(s.Raw()); err != nil {
					return err
				}
			} else {
				g.copied = ev.Header
			}
		}
		if g.copied.Size > 0 {
			ev.Header = g.copied
			ev.At = s.Offset()
			ev.End = ev.At + int64(ev.Size)
			if err := s.Copy(&g.copied, g.spool); err != nil {
				return err
			}
			g.copied = binlog.Header{}
		}
		done, err := g.index.Step(&ev)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Place(ev.At), err)
		}
		if done {
			return nil
		}
	}
}
