package wasmrt

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
)

// A frame is a header of eight bytes, length of the payload and kind, both
// uint32 little endian, and the payload.
const frameHeader = 8

// Kinds of frame from the host.
const (
	frameHello = 1 // JSON of hello
	frameCall  = 2 // method number as uint32, then the request
)

// Kinds of frame from the child.
const (
	frameReady   = 11 // the module is loaded
	frameReply   = 12 // the module's reply as it is
	frameRefused = 13 // a Fault: the module is not what can be run
	frameTrapped = 14 // a Fault: the instance is gone, the child ends
	frameLog     = 15 // level as int32, then the line
	frameMetric  = 16 // kind as uint32, float64, then the name
)

// slack is what a frame may have beside a message.
const slack = 4096

func readHeader(r io.Reader, limit int) (kind uint32, n int, err error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, 0, err
	}
	n64 := int64(binary.LittleEndian.Uint32(h[:]))
	kind = binary.LittleEndian.Uint32(h[4:])
	if n64 > int64(limit)+slack {
		return 0, 0, fmt.Errorf("frame of kind %d has %d bytes, the limit is %d", kind, n64, limit)
	}
	return kind, int(n64), nil
}

// readFrame reads one frame into buf, which is grown when needed.
func readFrame(r io.Reader, buf []byte, limit int) (kind uint32, payload []byte, err error) {
	kind, n, err := readHeader(r, limit)
	if err != nil {
		return 0, buf, err
	}
	if cap(buf) < n {
		buf = make([]byte, n, n+n/4)
	}
	buf = buf[:n]
	if _, err = io.ReadFull(r, buf); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return kind, buf, err
}

// writeFrame writes one frame whose payload is the given parts.
func writeFrame(w io.Writer, kind uint32, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if n > math.MaxUint32 {
		return fmt.Errorf("frame of kind %d has %d bytes", kind, n)
	}
	var h [frameHeader]byte
	binary.LittleEndian.PutUint32(h[:], uint32(n))
	binary.LittleEndian.PutUint32(h[4:], kind)
	bufs := append(net.Buffers{h[:]}, parts...)
	_, err := bufs.WriteTo(w)
	return err
}

// hello is what a child is told first.
type hello struct {
	Name     string `json:"name"` // for messages
	SHA256   string `json:"sha256"`
	Pages    uint32 `json:"pages"`    // of memory, 64 KiB each
	Data     uint64 `json:"data"`     // RLIMIT_DATA of the process
	Message  int    `json:"message"`  // bytes of a message
	CacheDir string `json:"cacheDir"` // of this module alone; empty = none
}
