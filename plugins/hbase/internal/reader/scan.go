package reader

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

const (
	done      = "done"
	mostParts = 256
	pageRows  = 200
)

// part is a range of rows of a table. Parts are made of regions when a table's
// scan begins, and stay as they are however regions split, merge or move.
type part struct {
	src        *source
	start, end []byte
	last       []byte // row given last
	done       bool
}

// key names the part's item of reader state; value is where the part ends and how
// far it came.
func (p *part) key() string { return "part:" + p.src.name + ":" + hex.EncodeToString(p.start) }

func (p *part) value() []byte {
	at := hex.EncodeToString(p.last)
	if p.done {
		at = done
	}
	return fmt.Appendf(nil, "%s %s", hex.EncodeToString(p.end), at)
}

func parsePart(s *source, start string, value []byte) (*part, error) {
	p := &part{src: s}
	end, at, _ := strings.Cut(string(value), " ")
	var errs [3]error
	p.start, errs[0] = hex.DecodeString(start)
	p.end, errs[1] = hex.DecodeString(end)
	if p.done = at == done; !p.done {
		p.last, errs[2] = hex.DecodeString(at)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, sdk.Faultf(sdk.CodeInvalidPosition, "state of the scan of %s: %q: %v", s.name, value, err)
	}
	return p, nil
}

// page is what came of a part, in order.
type page struct {
	part *part
	rows [][]rpc.Cell
	err  error // io.EOF = the part is done
}

// scan reads the rows that are there, several parts at a time.
type scan struct {
	parts  []*part
	fresh  bool // the parts are not in the reader's state yet
	pages  chan page
	cancel context.CancelFunc
	wg     sync.WaitGroup
	rest   page     // what of a page is still to be given
	stale  []string // items of state that are none of parts
}

// planScan returns the scan of the tables that were not scanned to their end, nil
// where there is none. State is that of several writers: parts that one of them
// holds are not done for it, whatever another one says of the table.
func (r *Reader) planScan(ctx context.Context, points []sdk.Point, state []batch.StateItem) (*scan, error) {
	if r.cfg.Start == "latest" {
		return nil, nil
	}
	s := &scan{pages: make(chan page)}
	if slices.ContainsFunc(points, func(p sdk.Point) bool { return p.Position.IsZero() }) {
		// A writer has nothing yet: the scan is begun for it, with the regions of now.
		for i := range state {
			if strings.HasPrefix(state[i].Key, "part:") {
				s.stale = append(s.stale, state[i].Key)
			}
		}
		state = nil
	}
	for _, src := range r.sources {
		ready, n := false, len(s.parts)
		for i := range state {
			switch start, ok := strings.CutPrefix(state[i].Key, "part:"+src.name+":"); {
			case state[i].Key == "scan:"+src.name:
				ready = true
			case ok:
				p, err := parsePart(src, start, state[i].Value)
				if err != nil {
					return nil, err
				}
				s.parts = append(s.parts, p)
			}
		}
		if ready || len(s.parts) > n {
			continue
		}
		regions, err := r.client.Regions(ctx, src.name)
		if err != nil {
			return nil, unavailable(err)
		}
		s.fresh = true
		for _, region := range slices.Collect(slices.Chunk(regions, (len(regions)+mostParts-1)/mostParts)) {
			s.parts = append(s.parts, &part{src: src, start: region[0].Start, end: region[len(region)-1].End})
		}
	}
	if len(s.parts) == 0 {
		return nil, nil
	}
	return s, nil
}

// run begins to read.
func (s *scan) run(r *Reader) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	todo := make(chan *part, len(s.parts))
	for _, p := range s.parts {
		if !p.done {
			todo <- p
		}
	}
	close(todo)
	for range min(r.cfg.Scanners, len(s.parts)) {
		s.wg.Go(func() {
			for p := range todo {
				if !s.read(ctx, r.client, *p, p) {
					return
				}
			}
		})
	}
}

func (s *scan) stop() {
	if s.cancel != nil {
		s.cancel()
		s.wg.Wait()
	}
}

// read hands over the pages of a part, of which from is a copy: the part itself
// belongs to whoever takes the pages.
func (s *scan) read(ctx context.Context, c *rpc.Client, from part, p *part) bool {
	q := from.src.query()
	q.Start, q.Stop, q.NoCache = from.start, from.end, true
	if len(from.last) > 0 {
		q.Start, q.After = from.last, true
	}
	x := c.Scanner(q)
	defer x.Close(context.WithoutCancel(ctx))
	for {
		rows, err := x.Next(ctx)
		select {
		case s.pages <- page{p, rows, err}:
		case <-ctx.Done():
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// scanned gives one piece of the scan and how far it came.
func (r *Reader) scanned(ctx context.Context, out *batch.Builder) (more bool, err error) {
	s := r.scan
	if s.fresh {
		s.fresh = false
		return true, r.tx(out, 0, func() error {
			for _, p := range s.parts {
				if err := r.keep(out, p.key(), p.value()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if !slices.ContainsFunc(s.parts, func(p *part) bool { return !p.done }) {
		return true, r.endScan(ctx, out)
	}
	if len(s.rest.rows) == 0 {
		var ok bool
		if s.rest, ok = take(ctx, s.pages, out.Empty()); !ok {
			return false, nil
		}
	}
	p, err := s.rest.part, s.rest.err
	if err != nil && !errors.Is(err, io.EOF) {
		return false, unavailable(err)
	}
	rows := s.rest.rows[:min(len(s.rest.rows), pageRows)]
	s.rest.rows = s.rest.rows[len(rows):]
	if len(rows) > 0 {
		p.last = slices.Clone(rows[len(rows)-1][0].Row)
	}
	p.done = err != nil
	err = r.tx(out, 0, func() error {
		for _, cells := range rows {
			if err := p.src.put(out, batch.Read, cells[0].Row, cells, p.src.ranged()); err != nil {
				return err
			}
		}
		return r.keep(out, p.key(), p.value())
	})
	failpoint.Hit("hbase.scanning")
	return true, err
}

// endScan says that the tables are scanned, and lets the changes come.
func (r *Reader) endScan(ctx context.Context, out *batch.Builder) error {
	s := r.scan
	err := r.tx(out, 0, func() error {
		said := map[*source]bool{}
		for _, p := range s.parts {
			if !said[p.src] {
				said[p.src] = true
				if err := r.keep(out, "scan:"+p.src.name, []byte(done)); err != nil {
					return err
				}
			}
			s.stale = append(s.stale, p.key())
		}
		for _, key := range s.stale {
			r.state++
			if err := out.StateItem(&batch.StateItem{Key: key, Version: r.state, Deleted: true}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.stop()
	r.scan = nil
	failpoint.Hit("hbase.scanned")
	calm, cancel := unhurried(ctx)
	defer cancel()
	if err := r.client.EnablePeer(calm, r.cfg.Peer); err != nil {
		return unavailable(err)
	}
	failpoint.Hit("hbase.peer-enabled")
	return nil
}

func (r *Reader) keep(out *batch.Builder, key string, value []byte) error {
	r.state++
	return out.StateItem(&batch.StateItem{Key: key, Version: r.state, Value: value})
}
