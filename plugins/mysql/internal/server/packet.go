package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxPacket is the size of a packet's payload that says that the next one goes on.
const maxPacket = 1<<24 - 1

// buffered is how much is read at once.
const buffered = 64 << 10

// Read reads the raw bytes of the connection, what ReadPacket has buffered first.
func (c *Conn) Read(p []byte) (int, error) {
	if c.r < c.w {
		n := copy(p, c.buf[c.r:c.w])
		c.r += n
		return n, nil
	}
	return c.net.Read(p)
}

// fill makes n bytes available from buf[r] on.
func (c *Conn) fill(n int) error {
	if c.w-c.r >= n {
		return nil
	}
	if c.r > 0 && (c.r == c.w || len(c.buf)-c.r < n) {
		copy(c.buf, c.buf[c.r:c.w])
		c.r, c.w = 0, c.w-c.r
	}
	for c.w-c.r < n {
		if c.w == len(c.buf) {
			// Grow with what arrives, not with what a size promises.
			grown := make([]byte, max(buffered, min(2*len(c.buf), c.r+n)))
			copy(grown, c.buf[:c.w])
			c.buf = grown
		}
		k, err := c.net.Read(c.buf[c.w:])
		c.w += k
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && c.w-c.r < n {
			return err
		}
	}
	return nil
}

// ReadPacket returns the payload of the next packet, those above 16 MiB joined. It
// is valid until the next read. An ERR packet comes as it is; see AsError.
func (c *Conn) ReadPacket() ([]byte, error) {
	if len(c.buf) > 4<<20 && c.w-c.r < buffered {
		small := make([]byte, buffered) // after a large packet
		c.w = copy(small, c.buf[c.r:c.w])
		c.r, c.buf = 0, small
	}
	size := 0 // of the payload so far, which lies before the next header
	for {
		if err := c.fill(size + 4); err != nil {
			return nil, err
		}
		head := c.buf[c.r+size:]
		n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
		if head[3] != c.seq {
			return nil, fmt.Errorf("packet %d came, %d was expected: the connection is out of step", head[3], c.seq)
		}
		c.seq++
		if err := c.fill(size + 4 + n); err != nil {
			return nil, err
		}
		// Close the gap that the header leaves, by moving the shorter part.
		if size == 0 {
			c.r += 4
		} else {
			at := c.r + size
			copy(c.buf[at:], c.buf[at+4:c.w])
			c.w -= 4
		}
		size += n
		if n < maxPacket {
			p := c.buf[c.r : c.r+size : c.r+size]
			c.r += size
			return p, nil
		}
	}
}

// WriteCommand begins a command: its code and what follows.
func (c *Conn) WriteCommand(code byte, payload []byte) error {
	if c.r < c.w {
		return errors.New("the answer to the command before was not read to its end")
	}
	c.seq = 0
	return c.writePacket([]byte{code}, payload)
}

func (c *Conn) writePacket(parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	payload := make([]byte, 0, n)
	for _, p := range parts {
		payload = append(payload, p...)
	}
	out := make([]byte, 0, n+4+n/maxPacket*4)
	for {
		k := min(len(payload), maxPacket)
		out = append(out, byte(k), byte(k>>8), byte(k>>16), c.seq)
		c.seq++
		out = append(out, payload[:k]...)
		payload = payload[k:]
		if k < maxPacket {
			break
		}
	}
	_, err := c.net.Write(out)
	return err
}

// LenEnc reads a length-encoded integer. NULL has size 1 and null true; size 0
// says that b is cut off.
func LenEnc(b []byte) (v uint64, size int, null bool) {
	if len(b) == 0 {
		return 0, 0, false
	}
	switch {
	case b[0] < 251:
		return uint64(b[0]), 1, false
	case b[0] == 251:
		return 0, 1, true
	case b[0] == 252 && len(b) >= 3:
		return uint64(binary.LittleEndian.Uint16(b[1:])), 3, false
	case b[0] == 253 && len(b) >= 4:
		return uint64(b[1]) | uint64(b[2])<<8 | uint64(b[3])<<16, 4, false
	case b[0] == 254 && len(b) >= 9:
		return binary.LittleEndian.Uint64(b[1:]), 9, false
	}
	return 0, 0, false
}

// lenBytes reads a length-encoded string and returns the rest.
func lenBytes(b []byte) (v, rest []byte, null, ok bool) {
	n, k, null := LenEnc(b)
	if k == 0 || n > uint64(len(b)-k) {
		return nil, nil, false, false
	}
	return b[k : k+int(n) : k+int(n)], b[k+int(n):], null, true
}

func appendLenBytes(dst, v []byte) []byte {
	switch n := len(v); {
	case n < 251:
		dst = append(dst, byte(n))
	case n < 1<<16:
		dst = binary.LittleEndian.AppendUint16(append(dst, 252), uint16(n))
	case n < 1<<24:
		dst = append(dst, 253, byte(n), byte(n>>8), byte(n>>16))
	default:
		dst = binary.LittleEndian.AppendUint64(append(dst, 254), uint64(n))
	}
	return append(dst, v...)
}
