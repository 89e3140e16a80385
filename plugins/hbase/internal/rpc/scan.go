package rpc

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// Scan says what to read of a table: rows from Start on, before Stop; empty = the
// ends of the table.
type Scan struct {
	Table    string
	Start    []byte
	After    bool // Start itself is left out
	Stop     []byte
	Columns  []Column
	Range    TimeRange
	Versions int
	Raw      bool // tombstones and what they hide too
	Rows     int  // a call; 0 = 1000
	Bytes    int  // a call; 0 = 4 MiB
	NoCache  bool // blocks that are read are not kept by the server
}

// Scanner reads rows in order. It survives moves, splits and merges: it goes on
// behind the last row it gave.
type Scanner struct {
	c    *Client
	s    Scan
	open bool
	reg  *Region
	id   uint64
	seq  uint64
	last []byte // row given last
	from []byte // where the next region begins
	end  bool
}

// Scanner begins a scan; nothing is sent yet.
func (c *Client) Scanner(s Scan) *Scanner {
	if s.Rows <= 0 {
		s.Rows = 1000
	}
	if s.Bytes <= 0 {
		s.Bytes = 4 << 20
	}
	return &Scanner{c: c, s: s, from: s.Start}
}

// Next returns some rows, each as its cells, in the order of rows; io.EOF after the
// last one.
func (x *Scanner) Next(ctx context.Context) (rows [][]Cell, err error) {
	err = x.c.retry(ctx, "scan of "+x.s.Table, func(ctx context.Context) error {
		for len(rows) == 0 {
			if x.end {
				return io.EOF
			}
			if rows, err = x.step(ctx); err != nil {
				// What of it the server did is not known: a new scanner goes on behind
				// the last row.
				x.open = false
				if x.reg != nil && remedyOf(err) == relocate {
					x.c.cache.drop(x.reg)
				}
				return err
			}
		}
		return nil
	})
	if x.end && len(rows) == 0 && err != nil {
		return nil, io.EOF
	}
	return rows, err
}

func (x *Scanner) step(ctx context.Context) ([][]Cell, error) {
	var param message
	if !x.open {
		start, after := x.from, x.s.After && bytes.Equal(x.from, x.s.Start)
		if x.last != nil && bytes.Compare(x.last, start) >= 0 {
			start, after = x.last, true
		}
		where := start
		if after {
			where = append(bytes.Clone(start), 0)
		}
		r, err := x.c.Locate(ctx, x.s.Table, where)
		if err != nil {
			return nil, err
		}
		x.reg = r
		scan := appendColumns(nil, 1, x.s.Columns)
		if x.s.Raw {
			scan = scan.bytes(2, message(nil).string(1, "_raw_").bytes(2, []byte{0xff}))
		}
		scan = scan.bytes(3, start).bool(21, !after)
		if len(x.s.Stop) > 0 {
			scan = scan.bytes(4, x.s.Stop)
		}
		if x.s.Range != (TimeRange{}) {
			scan = scan.bytes(6, x.s.Range.message())
		}
		if x.s.Versions > 1 {
			scan = scan.varint(7, uint64(x.s.Versions))
		}
		scan = scan.bool(8, !x.s.NoCache).varint(10, uint64(x.s.Bytes)).varint(17, uint64(x.s.Rows))
		param = message(nil).bytes(1, r.specifier()).bytes(2, scan)
	} else {
		param = message(nil).varint(3, x.id).varint(6, x.seq)
		x.seq++
	}
	param = param.varint(4, uint64(x.s.Rows)).bool(8, true)
	rep, err := x.c.once(ctx, x.reg.Addr, clientService, &request{method: "Scan", param: param})
	if err != nil {
		return nil, err
	}
	var res scanReply
	if err := res.parse(rep); err != nil {
		return nil, err
	}
	if !x.open {
		x.open, x.id, x.seq = true, res.id, 0
	}
	if n := len(res.rows); n > 0 {
		x.last = bytes.Clone(res.rows[n-1][0].Row)
	}
	switch {
	case res.hasMore && !res.more:
		x.end = true
	case res.hasMoreInRegion && !res.moreInRegion:
		// The region is done, and its scanner closed by the server.
		x.open = false
		if len(x.reg.End) == 0 || len(x.s.Stop) > 0 && bytes.Compare(x.reg.End, x.s.Stop) >= 0 {
			x.end = true
		}
		x.from = x.reg.End
	}
	return res.rows, nil
}

// Close ends a scan early.
func (x *Scanner) Close(ctx context.Context) {
	if x.open && x.id != 0 {
		param := message(nil).varint(3, x.id).varint(4, 0).bool(5, true)
		_, _ = x.c.once(ctx, x.reg.Addr, clientService, &request{method: "Scan", param: param})
	}
	x.open, x.end = false, true
}

// scanReply is a ScanResponse with its cells.
type scanReply struct {
	rows                  [][]Cell
	id                    uint64
	more, hasMore         bool
	moreInRegion          bool
	hasMoreInRegion       bool
	heartbeat, hasPartial bool
}

func (s *scanReply) parse(rep reply) error {
	var counts []uint64
	block := rep.cells
	err := fields(rep.msg, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			if b == nil {
				counts = append(counts, v)
				return nil
			}
			for len(b) > 0 { // packed
				v, n := protowire.ConsumeVarint(b)
				if n < 0 {
					return corrupt("cells per result")
				}
				counts, b = append(counts, v), b[n:]
			}
		case 2:
			s.id = v
		case 3:
			s.more, s.hasMore = v != 0, true
		case 5:
			cells, _, err := parseResult(b, nil)
			if err != nil {
				return err
			}
			if len(cells) > 0 {
				s.rows = append(s.rows, cells)
			}
		case 7:
			s.hasPartial = s.hasPartial || v != 0 && b == nil
		case 8:
			s.moreInRegion, s.hasMoreInRegion = v != 0, true
		case 9:
			s.heartbeat = v != 0
		}
		return nil
	})
	if err != nil {
		return err
	}
	if s.hasPartial {
		return corrupt("a part of a row, which was not asked for")
	}
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	if total > uint64(len(block)) {
		return corrupt(fmt.Sprintf("%d cells in %d bytes", total, len(block)))
	}
	all := make([]Cell, 0, total)
	for _, n := range counts {
		from := len(all)
		for range n {
			c, rest, err := CutCell(block, false)
			if err != nil {
				return err
			}
			all, block = append(all, c), rest
		}
		if len(all) > from {
			s.rows = append(s.rows, all[from:len(all):len(all)])
		}
	}
	if len(block) > 0 {
		return corrupt("bytes behind the cells of a scan")
	}
	return nil
}
