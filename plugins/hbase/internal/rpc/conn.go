package rpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Preamble opens a connection: magic, version 0, authentication SIMPLE.
var preamble = [6]byte{'H', 'B', 'a', 's', 0, 0x50}

// maxFrame bounds what a response may announce.
const maxFrame = 512 << 20

// reply is what a call got: the message and the cell block after it.
type reply struct {
	msg   []byte
	cells []byte
	err   error
}

type call struct {
	done chan reply
}

// conn is one connection to one service of one server. Calls are pipelined:
// answers come in any order and are told apart by their ids.
type conn struct {
	addr    string
	timeout time.Duration
	nc      net.Conn

	write sync.Mutex

	mu    sync.Mutex
	calls map[uint32]*call
	next  uint32
	err   error

	heard atomic.Int64 // when something was last received, in nanoseconds
	ended chan struct{}
}

func dialConn(ctx context.Context, cfg *Config, addr, service string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
	defer cancel()
	nc, err := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, &connError{addr, err}
	}
	if cfg.Login != nil {
		if nc, err = cfg.Login(ctx, nc); err != nil {
			return nil, fmt.Errorf("log in at %s: %w", addr, err)
		}
	}
	user := cfg.User
	if user == "" {
		user = "datalink"
	}
	// The version makes servers put results into cell blocks.
	version := message(nil).string(1, "2.6.4").string(2, "").string(3, "").string(4, "").string(5, "").string(6, "").varint(7, 2).varint(8, 6)
	header := message(nil).bytes(1, message(nil).string(1, user)).string(2, service).string(3, KeyValueCodec).bytes(5, version)
	hello := append([]byte(nil), preamble[:]...)
	hello = binary.BigEndian.AppendUint32(hello, uint32(len(header)))
	hello = append(hello, header...)
	_ = nc.SetWriteDeadline(time.Now().Add(cfg.ConnectTimeout))
	if _, err := nc.Write(hello); err != nil {
		nc.Close()
		return nil, &connError{addr, err}
	}
	c := &conn{addr: addr, timeout: cfg.CallTimeout, nc: nc, calls: map[uint32]*call{}, ended: make(chan struct{})}
	c.heard.Store(time.Now().UnixNano())
	go c.receive()
	return c, nil
}

// request is a call to be made. Cells may come in parts, which saves copying them
// together.
type request struct {
	method   string
	param    []byte
	cells    [][]byte
	priority uint32
}

// call sends a request and waits for its answer.
func (c *conn) call(ctx context.Context, r *request) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	began := time.Now()
	w := &call{done: make(chan reply, 1)}
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return reply{}, err
	}
	c.next++
	id := c.next
	c.calls[id] = w
	c.mu.Unlock()

	if err := c.send(ctx, id, r); err != nil {
		c.fail(err)
	}
	select {
	case rep := <-w.done:
		return rep, rep.err
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		if time.Since(began) >= c.timeout && c.heard.Load() < began.UnixNano() {
			// Nothing came in all that time: the server is stopped or cut off.
			c.fail(fmt.Errorf("no answer for %s", c.timeout))
		}
		if time.Since(began) >= c.timeout {
			return reply{}, &connError{c.addr, fmt.Errorf("no answer to %s within %s: %w", r.method, c.timeout, os.ErrDeadlineExceeded)}
		}
		return reply{}, ctx.Err()
	}
}

func (c *conn) send(ctx context.Context, id uint32, r *request) error {
	n := 0
	for _, p := range r.cells {
		n += len(p)
	}
	h := message(nil).varint(1, uint64(id)).string(3, r.method).bool(4, true)
	if n > 0 {
		h = h.bytes(5, message(nil).varint(1, uint64(n)))
	}
	if r.priority > 0 {
		h = h.varint(6, uint64(r.priority))
	}
	if end, ok := ctx.Deadline(); ok {
		h = h.varint(7, uint64(max(1, time.Until(end).Milliseconds())))
	}
	head := make([]byte, 4, 16+len(h))
	head = protowire.AppendBytes(head, h)
	head = protowire.AppendVarint(head, uint64(len(r.param)))
	binary.BigEndian.PutUint32(head, uint32(len(head)-4+len(r.param)+n))
	bufs := make(net.Buffers, 0, 2+len(r.cells))
	bufs = append(append(bufs, head, r.param), r.cells...)
	c.write.Lock()
	defer c.write.Unlock()
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.timeout))
	_, err := bufs.WriteTo(c.nc)
	return err
}

func (c *conn) receive() {
	defer close(c.ended)
	in := bufio.NewReaderSize(c.nc, 64<<10)
	for {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			c.fail(err)
			return
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > maxFrame {
			c.fail(corrupt(fmt.Sprintf("frame of %d bytes", n)))
			return
		}
		frame, err := readFrame(in, int(n))
		if err != nil {
			c.fail(err)
			return
		}
		c.heard.Store(time.Now().UnixNano())
		id, rep, err := parseReply(frame, c.addr)
		if err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		w := c.calls[id]
		delete(c.calls, id)
		c.mu.Unlock()
		if w != nil {
			w.done <- rep
		} else if rep.err != nil && id == 0 {
			// An answer to no call: the server refused the connection.
			c.fail(rep.err)
			return
		}
	}
}

// readFrame allocates as it reads, so that a length alone costs nothing.
func readFrame(in io.Reader, n int) ([]byte, error) {
	const step = 4 << 20
	frame := make([]byte, 0, min(n, step))
	for len(frame) < n {
		m := min(n-len(frame), step)
		at := len(frame)
		frame = append(frame, make([]byte, m)...)
		if _, err := io.ReadFull(in, frame[at:]); err != nil {
			return nil, err
		}
	}
	return frame, nil
}

// parseReply decodes a response frame.
func parseReply(frame []byte, addr string) (id uint32, r reply, err error) {
	h, rest, err := delimited(frame)
	if err != nil {
		return 0, r, err
	}
	var cells uint64
	err = fields(h, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			id = uint32(v)
		case 2:
			e, err := parseException(b, addr)
			r.err = e
			return err
		case 3:
			return fields(b, func(f protowire.Number, v uint64, _ []byte) error {
				if f == 1 {
					cells = v
				}
				return nil
			})
		}
		return nil
	})
	if err != nil || r.err != nil {
		return id, r, err
	}
	if r.msg, rest, err = delimited(rest); err != nil {
		return id, r, err
	}
	if cells != uint64(len(rest)) {
		return id, r, corrupt(fmt.Sprintf("cell block of %d bytes, %d announced", len(rest), cells))
	}
	r.cells = rest
	return id, r, nil
}

// fail ends the connection; all calls that wait get the error.
func (c *conn) fail(err error) {
	if !errors.Is(err, ErrClosed) {
		var re *RemoteError
		if !errors.As(err, &re) {
			err = &connError{c.addr, err}
		}
	}
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	err = c.err
	calls := c.calls
	c.calls = map[uint32]*call{}
	c.mu.Unlock()
	_ = c.nc.Close()
	for _, w := range calls {
		w.done <- reply{err: err}
	}
}

func (c *conn) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}
