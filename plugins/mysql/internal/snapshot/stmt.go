package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
)

// Commands of the protocol.
const (
	comPrepare = 0x16
	comExecute = 0x17
	comClose   = 0x19
)

// selectRows runs a SELECT of sel's list in the binary protocol, in which numbers
// and times need no text, and gives each row's packet to each, as a view. A
// connection on which it failed is closed.
func selectRows(ctx context.Context, c *server.Conn, sql string, sel *rows.Selection, each func(packet []byte) error) error {
	if t, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(t)
	}
	off := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err := exchange(c, sql, sel, each)
	if off() {
		_ = c.SetDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errRefused):
		return errors.Unwrap(err) // the server said so: the connection is fine
	}
	_ = c.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("read rows of %s: %w", sel.Schema.Name(), err)
}

// errRefused marks an error that the server gave.
var errRefused = errors.New("refused")

type refused struct{ err error }

func (r refused) Error() string        { return r.err.Error() }
func (r refused) Unwrap() error        { return r.err }
func (r refused) Is(target error) bool { return target == errRefused }

func answer(c *server.Conn) ([]byte, error) {
	p, err := c.ReadPacket()
	if err != nil {
		return nil, err
	}
	if err := server.AsError(p); err != nil {
		return nil, refused{err}
	}
	if len(p) == 0 {
		return nil, errors.New("empty answer")
	}
	return p, nil
}

func exchange(c *server.Conn, sql string, sel *rows.Selection, each func(packet []byte) error) error {
	if err := c.WriteCommand(comPrepare, []byte(sql)); err != nil {
		return err
	}
	p, err := answer(c)
	if err != nil {
		return err
	}
	if len(p) < 12 || p[0] != 0 {
		return fmt.Errorf("answer of %d bytes to PREPARE", len(p))
	}
	id := binary.LittleEndian.Uint32(p[1:])
	if n := binary.LittleEndian.Uint16(p[7:]); n != 0 {
		return fmt.Errorf("the statement has %d parameters", n)
	}
	if n := int(binary.LittleEndian.Uint16(p[5:])); n > 0 {
		if _, err := c.ReadColumns(n); err != nil {
			return err
		}
	}
	run := binary.LittleEndian.AppendUint32(nil, id)
	run = append(run, 0, 1, 0, 0, 0)
	if err := c.WriteCommand(comExecute, run); err != nil {
		return err
	}
	if err := result(c, sel, each); err != nil {
		return err
	}
	return c.WriteCommand(comClose, run[:4])
}

func result(c *server.Conn, sel *rows.Selection, each func(packet []byte) error) error {
	p, err := answer(c)
	if err != nil {
		return err
	}
	n, _, _ := server.LenEnc(p)
	cols, err := c.ReadColumns(int(n))
	if err != nil {
		return err
	}
	types := make([]uint8, len(cols))
	for i := range cols {
		types[i] = cols[i].Type
	}
	if err := sel.Result(types); err != nil {
		return err
	}
	for {
		p, err := answer(c)
		if err != nil {
			return err
		}
		if server.IsEnd(p) {
			return nil
		}
		if err := each(p); err != nil {
			return err
		}
	}
}
