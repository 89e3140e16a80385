package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"strconv"
	"strings"
)

// copyRows is how many snapshot rows make a COPY worth its two statements more.
const copyRows = 5000

// copyTable is the temporary table of a session; there is one, made anew where the
// columns are others.
const copyTable = "pg_temp.datalink_copy"

// copy sends rows by COPY into a temporary table and merges it into the target.
func (x *pipe) copy(ctx context.Context, r *rowset) error {
	if err := x.flush(ctx); err != nil {
		return err
	}
	s := x.t.s
	var cols []string
	for k := range r.cols {
		cols = append(cols, "a"+strconv.Itoa(k)+" "+strings.TrimSuffix(r.wire(k).array(), "[]"))
	}
	def := strings.Join(cols, ", ")
	if !s.copies[def] {
		clear(s.copies)
		if err := s.run(ctx, "DROP TABLE IF EXISTS "+copyTable+"; CREATE TEMPORARY TABLE datalink_copy ("+def+") ON COMMIT DELETE ROWS"); err != nil {
			return err
		}
		// A transaction that is rolled back takes the table with it, so it is looked
		// for again after the next one.
		x.t.copied = true
		s.copies[def] = true
	} else if err := s.run(ctx, "TRUNCATE "+copyTable); err != nil {
		return err
	}
	if _, err := s.pc.CopyFrom(ctx, newCopyReader(r), "COPY "+copyTable+" FROM STDIN (FORMAT binary)"); err != nil {
		return err
	}
	_, err := s.exec(ctx, r.p.text(mergeText, r.mask))
	return err
}

// copyReader turns the columns of a set of rows into rows in COPY's binary form.
type copyReader struct {
	r    *rowset
	at   []int
	row  int
	buf  []byte
	from int
	end  bool
}

func newCopyReader(r *rowset) *copyReader {
	c := &copyReader{r: r, at: make([]int, len(r.cols))}
	for k := range c.at {
		c.at[k] = arrayHeader
	}
	c.buf = append(c.buf, "PGCOPY\n\xff\r\n\x00"...)
	c.buf = append(c.buf, 0, 0, 0, 0, 0, 0, 0, 0)
	return c
}

const copyChunk = 64 << 10

func (c *copyReader) Read(p []byte) (int, error) {
	if c.from == len(c.buf) {
		c.buf, c.from = c.buf[:0], 0
		c.fill()
	}
	if c.from == len(c.buf) {
		return 0, io.EOF
	}
	n := copy(p, c.buf[c.from:])
	c.from += n
	return n, nil
}

func (c *copyReader) fill() {
	for len(c.buf) < copyChunk && c.row < len(c.r.at) {
		c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(len(c.at)))
		for k := range c.at {
			b := c.r.cols[k].buf
			to := next(b, c.at[k])
			c.buf = append(c.buf, b[c.at[k]:to]...)
			c.at[k] = to
		}
		c.row++
	}
	if c.row == len(c.r.at) && !c.end {
		c.end = true
		c.buf = append(c.buf, 0xff, 0xff)
	}
}
