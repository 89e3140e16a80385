package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Column is a column of a result.
type Column struct {
	Name    string
	Table   string // as the table is called, without aliases
	Charset uint16 // collation id
	Length  uint32
	Type    byte
	Flags   uint16
	Scale   byte
}

// Row is a row of a result: text, nil = NULL.
type Row [][]byte

// Text returns a column as text, NULL as nothing.
func (r Row) Text(i int) string { return string(r[i]) }

// Result is a whole result.
type Result struct {
	Columns  []Column
	Rows     []Row
	Affected uint64
	LastID   uint64
}

// Get returns the column of that name in the row, without regard to case, "" for
// NULL and for a column that is not there.
func (r *Result) Get(row int, name string) string {
	for i := range r.Columns {
		if strings.EqualFold(r.Columns[i].Name, name) {
			return string(r.Rows[row][i])
		}
	}
	return ""
}

// Exec runs a statement and drops its rows, if any.
func (c *Conn) Exec(ctx context.Context, sql string) (Result, error) {
	var res Result
	err := c.run(ctx, sql, &res, func([]Column, Row) error { return nil })
	return res, err
}

// Query runs a statement and returns all of its rows.
func (c *Conn) Query(ctx context.Context, sql string) (*Result, error) {
	res := &Result{}
	err := c.run(ctx, sql, res, func(_ []Column, row Row) error {
		n := 0
		for _, v := range row {
			n += len(v)
		}
		arena := make([]byte, 0, n)
		own := make(Row, len(row))
		for i, v := range row {
			if v != nil {
				at := len(arena)
				arena = append(arena, v...)
				own[i] = arena[at:len(arena):len(arena)]
			}
		}
		res.Rows = append(res.Rows, own)
		return nil
	})
	return res, err
}

// One runs a statement and returns the first column of its first row as text.
func (c *Conn) One(ctx context.Context, sql string) (string, error) {
	res, err := c.Query(ctx, sql)
	if err != nil {
		return "", err
	}
	if len(res.Rows) == 0 || len(res.Rows[0]) == 0 {
		return "", fmt.Errorf("%s: no row", sql)
	}
	return string(res.Rows[0][0]), nil
}

// Stream runs a statement and gives each row to f, as views that are valid until
// it returns. After an error of f the connection cannot be used any more.
func (c *Conn) Stream(ctx context.Context, sql string, f func([]Column, Row) error) error {
	return c.run(ctx, sql, &Result{}, f)
}

func (c *Conn) run(ctx context.Context, sql string, res *Result, f func([]Column, Row) error) error {
	if c.broken != nil {
		return c.broken
	}
	defer c.bound(ctx)()
	err := c.exchange(sql, res, f)
	var e *Error
	if err != nil && !errors.As(err, &e) {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = context.DeadlineExceeded // the context's own timer may be a moment late
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		c.broken = fmt.Errorf("%w to %s: %w", ErrBroken, c.Address, err)
		return c.broken
	}
	if err != nil {
		return fmt.Errorf("%s: %w", shorten(sql), err)
	}
	return nil
}

func shorten(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}

func (c *Conn) exchange(sql string, res *Result, f func([]Column, Row) error) error {
	if err := c.WriteCommand(3, []byte(sql)); err != nil {
		return err
	}
	p, err := c.ReadPacket()
	if err != nil {
		return err
	}
	if err := AsError(p); err != nil {
		return err
	}
	if len(p) == 0 {
		return errors.New("empty answer")
	}
	switch p[0] {
	case 0x00:
		b := p[1:]
		if v, n, _ := LenEnc(b); n > 0 {
			res.Affected = v
			res.LastID, _, _ = LenEnc(b[n:])
		}
		return nil
	case 0xfb:
		return errors.New("the server asks for a file")
	}
	n, _, _ := LenEnc(p)
	if res.Columns, err = c.ReadColumns(int(n)); err != nil {
		return err
	}
	row := make(Row, len(res.Columns))
	for {
		p, err := c.ReadPacket()
		if err != nil {
			return err
		}
		if err := AsError(p); err != nil {
			return err
		}
		if IsEnd(p) {
			return nil
		}
		for i := range row {
			v, rest, null, ok := lenBytes(p)
			if !ok {
				return fmt.Errorf("row cut off at column %d", i+1)
			}
			if p = rest; null {
				v = nil
			} else if v == nil {
				v = []byte{}
			}
			row[i] = v
		}
		if err := f(res.Columns, row); err != nil {
			return err
		}
	}
}

// IsEnd reports whether a packet ends a result: EOF, or OK in its place. A row
// whose first value is longer than 16 MiB begins with fe as well, but is longer.
func IsEnd(p []byte) bool { return len(p) > 0 && p[0] == 0xfe && len(p) < maxPacket }

// ReadColumns reads n column definitions and, where there is one, the EOF packet
// after them.
func (c *Conn) ReadColumns(n int) ([]Column, error) {
	cols := make([]Column, n)
	for i := range cols {
		p, err := c.ReadPacket()
		if err != nil {
			return nil, err
		}
		if err := AsError(p); err != nil {
			return nil, err
		}
		if !cols[i].parse(p) {
			return nil, fmt.Errorf("definition of column %d is cut off", i+1)
		}
	}
	if c.Capabilities&CapDeprecateEOF == 0 {
		if _, err := c.ReadPacket(); err != nil {
			return nil, err
		}
	}
	return cols, nil
}

func (col *Column) parse(p []byte) bool {
	var text [6][]byte // catalog, schema, table, original table, name, original name
	for i := range text {
		var ok bool
		if text[i], p, _, ok = lenBytes(p); !ok {
			return false
		}
	}
	if len(p) < 11 {
		return false
	}
	p = p[1:]
	*col = Column{
		Name: string(text[4]), Table: string(text[3]),
		Charset: uint16(p[0]) | uint16(p[1])<<8,
		Length:  uint32(p[2]) | uint32(p[3])<<8 | uint32(p[4])<<16 | uint32(p[5])<<24,
		Type:    p[6], Flags: uint16(p[7]) | uint16(p[8])<<8, Scale: p[9],
	}
	return true
}
