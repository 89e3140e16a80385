package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrWait is what the source of a stream returns where nothing has arrived yet.
// The Scanner hands it on and is ready to be called again.
var ErrWait = errors.New("nothing has arrived")

// Packets of a dump (protocol of the server): size of the payload in 3 bytes, a
// sequence number, then the payload, whose first byte says what follows. An event
// above 16 MiB goes on in further packets, which have no such byte.
const (
	frameHead = 5
	maxFrame  = 1<<24 - 1
)

// PacketError carries the payload of a packet that reports an error.
type PacketError struct{ Payload []byte }

// Error says that there is one; server.AsError decodes it.
func (e *PacketError) Error() string { return "the server reports an error" }

// frames is the state of a Scanner that reads packets.
type frames struct {
	seq  byte // of the next packet
	busy bool // Copy is in the middle of an event
	left int  // of that event
	pack int  // of the packet it is in
}

// NewStream returns a Scanner of the packets of a dump. Seq is the sequence number
// of the first one.
func NewStream(name string, src io.Reader, seq byte, limit int) *Scanner {
	s := NewScanner(name, src, 4, Format{}, limit)
	s.frames = &frames{seq: seq}
	return s
}

// SetPlace says which file the next event is from and where it stands in it.
func (s *Scanner) SetPlace(name string, at int64) { s.name, s.at = name, at }

// Buffered returns how many bytes have arrived and are not read.
func (s *Scanner) Buffered() int { return s.w - s.r }

// More reads what has arrived, making room for it. It returns ErrWait where that
// is nothing.
func (s *Scanner) More() error {
	if s.w == len(s.buf) {
		to := s.buf
		if s.r < window/2 {
			to = make([]byte, 2*len(s.buf))
		}
		s.w = copy(to, s.buf[s.r:s.w])
		s.r, s.buf = 0, to
	}
	n, err := s.src.Read(s.buf[s.w:])
	s.w += n
	switch {
	case n > 0:
		return nil
	case err == io.EOF || err == nil:
		return io.ErrUnexpectedEOF
	}
	return err
}

// framed returns the bytes of an event of n bytes in its packets, without the head
// of the first.
func framed(n int) int { return n + 4*((n+1)/maxFrame) }

func (s *Scanner) peekFrame(h *Header) error {
	if s.w-s.r < frameHead+HeaderSize {
		if err := s.fill(frameHead); err != nil {
			return err
		}
		if s.w == s.r && s.eof {
			return io.ErrUnexpectedEOF
		}
		if s.w-s.r < frameHead {
			return io.ErrUnexpectedEOF
		}
		if s.buf[s.r+4] != 0 {
			return s.control()
		}
		if err := s.fill(frameHead + HeaderSize); err != nil {
			return err
		}
		if s.w-s.r < frameHead+HeaderSize {
			return io.ErrUnexpectedEOF
		}
	}
	b := s.buf[s.r:]
	if b[4] != 0 {
		return s.control()
	}
	if b[3] != s.frames.seq {
		return fmt.Errorf("%w: %s: packet %d came, %d was expected", ErrCorrupt, s.Place(s.at), b[3], s.frames.seq)
	}
	if err := s.header(h, b[frameHead:]); err != nil {
		return err
	}
	if size, want := packetSize(b), min(int(h.Size)+1, maxFrame); size != want {
		return fmt.Errorf("%w: %s: %s event of %d bytes in a packet of %d", ErrCorrupt, s.Place(s.at), h.Type, h.Size, size)
	}
	return nil
}

func packetSize(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// control reads a packet that is no event: the end of the dump or an error.
func (s *Scanner) control() error { return s.controlAt(0) }

// Control returns what a packet says that lies ahead and is no event, nil where an
// event is next or nothing has arrived.
func (a *Ahead) Control() error {
	if b := a.s.buf[min(a.s.r+a.rel, a.s.w):a.s.w]; len(b) < frameHead || b[4] == 0 {
		return nil
	}
	return a.s.controlAt(a.rel)
}

func (s *Scanner) controlAt(rel int) error {
	n := packetSize(s.buf[s.r+rel:])
	if err := s.fill(rel + 4 + n); err != nil {
		return err
	}
	if s.w-s.r < rel+4+n {
		return io.ErrUnexpectedEOF
	}
	p := s.buf[s.r+rel+4 : s.r+rel+4+n]
	switch p[0] {
	case 0xfe:
		return io.EOF
	case 0xff:
		return &PacketError{append([]byte(nil), p...)}
	}
	return fmt.Errorf("%w: %s: packet that begins with %#02x, expected an event", ErrCorrupt, s.Place(s.at), p[0])
}

// unframe checks the packets of the next event, of n bytes, which are all there,
// and joins them.
func (s *Scanner) unframe(n int) error {
	f := s.frames
	f.seq++
	if n+1 < maxFrame {
		return nil
	}
	b := s.buf[s.r+frameHead : s.r+frameHead+framed(n)]
	at, from := maxFrame-1, maxFrame-1 // where joined bytes end, where the next packet begins
	for {
		size := packetSize(b[from:])
		if b[from+3] != f.seq || size != min(n-at, maxFrame) {
			return fmt.Errorf("%w: %s: packet %d of %d bytes goes on with an event, expected packet %d of %d", ErrCorrupt, s.Place(s.at), b[from+3], size, f.seq, min(n-at, maxFrame))
		}
		f.seq++
		copy(b[at:], b[from+4:from+4+size])
		at, from = at+size, from+4+size
		if size < maxFrame {
			return nil
		}
	}
}

// Copy writes the next event to w as it stands in the log, as far as it has
// arrived, so that it is never in memory as a whole. It is called until it returns
// another error than ErrWait; until then nothing else may be.
func (s *Scanner) Copy(h *Header, w io.Writer) error {
	f := s.frames
	if !f.busy {
		f.busy = true
		f.left, f.pack = int(h.Size), min(int(h.Size), maxFrame-1)
		f.seq++
		s.r += frameHead
	}
	for {
		if f.pack == 0 {
			// Another packet follows, an empty one too where the last was full.
			if err := s.fill(4); err != nil {
				return err
			}
			if s.w-s.r < 4 {
				return io.ErrUnexpectedEOF
			}
			b := s.buf[s.r:]
			if want := min(f.left, maxFrame); b[3] != f.seq || packetSize(b) != want {
				return fmt.Errorf("%w: %s: packet %d of %d bytes goes on with an event, expected packet %d of %d", ErrCorrupt, s.Place(s.at), b[3], packetSize(b), f.seq, want)
			}
			f.seq++
			s.r += 4
			if f.pack = min(f.left, maxFrame); f.left == 0 {
				break
			}
		}
		if s.w == s.r {
			if err := s.fill(1); err != nil {
				return err
			}
			if s.w == s.r {
				return io.ErrUnexpectedEOF
			}
		}
		k := min(f.pack, s.w-s.r)
		if _, err := w.Write(s.buf[s.r : s.r+k]); err != nil {
			return err
		}
		s.r, f.pack, f.left = s.r+k, f.pack-k, f.left-k
		if f.left == 0 && f.pack == 0 && !s.full(int(h.Size)) {
			break
		}
	}
	f.busy = false
	s.at += int64(h.Size)
	return nil
}

// full reports whether the last packet of an event with bytes is a full one, after
// which an empty one comes.
func (s *Scanner) full(n int) bool { return (n+1)%maxFrame == 0 }

// EndOf returns the end of the event by the 32 bits that the server wrote for it,
// counted from near: the first such offset at or after it. MariaDB 11.4 and later
// write 0 into all but the last event of a group; near is returned then.
func EndOf(next uint32, near int64) int64 {
	if next == 0 {
		return near
	}
	return near + int64(next-uint32(near))
}

// HeartbeatPlace reads the file and the offset that a heartbeat tells: all up to
// there was sent or passed over.
func HeartbeatPlace(ev *Event) (file string, at int64, err error) {
	if ev.Type == Heartbeat {
		return string(ev.Body), int64(ev.Next), nil
	}
	b := ev.Body
	for len(b) >= 2 {
		field := b[0]
		n, k := LenEnc(b[1:])
		if k == 0 || uint64(len(b)-1-k) < n {
			break
		}
		v := b[1+k : 1+k+int(n)]
		b = b[1+k+int(n):]
		switch field {
		case 0:
			return file, at, nil
		case 1:
			file = string(v)
		case 2:
			pos, k := LenEnc(v)
			if k == 0 {
				return "", 0, corrupt(ev.Type, "its position")
			}
			at = int64(pos)
		}
	}
	if file == "" {
		return "", 0, corrupt(ev.Type, "%d bytes", len(ev.Body))
	}
	return file, at, nil
}

// RotatePlace reads the file and the offset that a ROTATE event names.
func RotatePlace(body []byte) (file string, at int64, err error) {
	if file, err = DecodeRotate(body); err != nil {
		return "", 0, err
	}
	return file, int64(binary.LittleEndian.Uint64(body)), nil
}
