package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ErrCorrupt is wrapped by errors about bytes that are not a log of this format,
// or that were damaged.
var ErrCorrupt = errors.New("corrupt binary log")

// ErrCut is wrapped when a log ends in the middle of an event.
var ErrCut = errors.New("binary log is cut off")

// ErrTooLarge is wrapped when an event exceeds the limit for one event.
var ErrTooLarge = errors.New("event too large")

// window is what a Scanner reads at once. Events that fit are never copied.
const window = 1 << 20

// Scanner reads the events of one file, or of the inside of one compressed
// transaction, in order.
type Scanner struct {
	Format Format
	name   string // for messages
	src    io.Reader
	skip   io.Seeker // of src, where it can seek
	buf    []byte
	r, w   int
	at     int64 // offset of buf[r]
	eof    bool
	max    int
	check  bool
	raw    []byte // of the event that Next returned
	frames *frames
}

// NewScanner reads from src, whose first byte is at offset at of the file name.
// Events of more than limit bytes are refused; 0 = 1 GiB.
func NewScanner(name string, src io.Reader, at int64, format Format, limit int) *Scanner {
	if limit <= 0 {
		limit = 1 << 30
	}
	s := &Scanner{name: name, src: src, at: at, Format: format, max: limit, check: true, buf: make([]byte, window)}
	s.skip, _ = src.(io.Seeker)
	return s
}

// Reset makes s read another source, with the buffer it has.
func (s *Scanner) Reset(name string, src io.Reader, at int64, format Format) {
	if len(s.buf) > 4*window {
		s.buf = make([]byte, window)
	}
	s.name, s.src, s.at, s.Format = name, src, at, format
	s.skip, _ = src.(io.Seeker)
	s.r, s.w, s.eof = 0, 0, false
	s.raw = nil
	if s.frames != nil {
		*s.frames = frames{}
	}
}

// Name returns the name of the file.
func (s *Scanner) Name() string { return s.name }

// Offset returns the offset of the next event.
func (s *Scanner) Offset() int64 { return s.at }

// Place names an offset for messages.
func (s *Scanner) Place(at int64) string { return fmt.Sprintf("%s at offset %d", s.name, at) }

// fill makes n bytes available from buf[r] on, as far as the source has them.
func (s *Scanner) fill(n int) error {
	if s.w-s.r >= n {
		return nil
	}
	if s.r > 0 {
		copy(s.buf, s.buf[s.r:s.w])
		s.w -= s.r
		s.r = 0
	}
	if n > len(s.buf) {
		// Grow by doubling and only as bytes arrive: a hostile size costs nothing.
		size := len(s.buf)
		for size < n && size < 2*s.w+window {
			size *= 2
		}
		grown := make([]byte, min(size, max(n, window)))
		copy(grown, s.buf[:s.w])
		s.buf = grown
	}
	for s.w < n && !s.eof {
		if s.w == len(s.buf) {
			size := min(2*len(s.buf), n)
			grown := make([]byte, size)
			copy(grown, s.buf[:s.w])
			s.buf = grown
		}
		k, err := s.src.Read(s.buf[s.w:])
		s.w += k
		if err == io.EOF {
			s.eof = true
		} else if err == ErrWait {
			return err
		} else if err != nil {
			return fmt.Errorf("read %s: %w", s.Place(s.at), err)
		}
	}
	return nil
}

// Peek reads the header of the next event. It returns io.EOF at the end of the
// log and ErrCut when the log ends inside of the header.
func (s *Scanner) Peek(h *Header) error {
	if s.frames != nil {
		return s.peekFrame(h)
	}
	if s.w-s.r < HeaderSize {
		if err := s.fill(HeaderSize); err != nil {
			return err
		}
		if s.w == s.r {
			return io.EOF
		}
		if s.w-s.r < HeaderSize {
			return fmt.Errorf("%w: %s, %d bytes of an event's header are there", ErrCut, s.Place(s.at), s.w-s.r)
		}
	}
	return s.header(h, s.buf[s.r:])
}

func (s *Scanner) header(h *Header, b []byte) error {
	h.decode(b)
	if h.Size < HeaderSize {
		return fmt.Errorf("%w: %s, event of %d bytes", ErrCorrupt, s.Place(s.at), h.Size)
	}
	if int64(h.Size) > int64(s.max) {
		return fmt.Errorf("%w: %s, %s event of %d bytes, the limit is %d", ErrTooLarge, s.Place(s.at), h.Type, h.Size, s.max)
	}
	return nil
}

func (h *Header) decode(b []byte) {
	_ = b[HeaderSize-1]
	h.Time = binary.LittleEndian.Uint32(b)
	h.Type = Type(b[4])
	h.Server = binary.LittleEndian.Uint32(b[5:])
	h.Size = binary.LittleEndian.Uint32(b[9:])
	h.Next = binary.LittleEndian.Uint32(b[13:])
	h.Flags = binary.LittleEndian.Uint16(b[17:])
}

// Next reads the next event. Errors are those of Peek, and ErrCorrupt when the
// checksum does not fit.
func (s *Scanner) Next(ev *Event) error {
	if err := s.Peek(&ev.Header); err != nil {
		return err
	}
	n := int(ev.Size)
	size, skip := n, 0 // bytes of the buffer that the event takes, and those before it
	if s.frames != nil {
		size, skip = framed(n)+frameHead, frameHead
	}
	if s.w-s.r < size {
		if err := s.fill(size); err != nil {
			return err
		}
		if s.w-s.r < size {
			return fmt.Errorf("%w: %s, %d of the %d bytes of a %s event are there", ErrCut, s.Place(s.at), s.w-s.r, size, ev.Type)
		}
	}
	if s.frames != nil {
		if err := s.unframe(n); err != nil {
			return err
		}
	}
	raw := s.buf[s.r+skip : s.r+skip+n : s.r+skip+n]
	ev.At, ev.End = s.at, s.at+int64(n)
	if ev.Type == FormatDescription {
		if err := s.Format.decode(raw, s.Place(s.at)); err != nil {
			return err
		}
	}
	body := raw[HeaderSize:]
	if s.frames != nil && ev.Flags&FlagArtificial != 0 || ev.Type == Heartbeat || ev.Type == HeartbeatV2 {
		// The server makes these up; whether they end in a checksum is seen from them.
		if k := len(raw) - 4; k >= HeaderSize && binary.LittleEndian.Uint32(raw[k:]) == crc32.ChecksumIEEE(raw[:k]) {
			body = raw[HeaderSize:k:k]
		}
	} else if s.Format.Checksum || ev.Type == FormatDescription && s.Format.aware {
		if len(body) < 4 {
			return fmt.Errorf("%w: %s, %s event of %d bytes has no room for its checksum", ErrCorrupt, s.Place(s.at), ev.Type, n)
		}
		body = body[: len(body)-4 : len(body)-4]
		if s.check {
			if err := s.verify(raw, ev); err != nil {
				return err
			}
		}
	}
	ev.Body = body
	s.raw = raw
	s.r += size
	s.at += int64(n)
	return nil
}

// Raw returns the event that Next returned last as it stands in the log, header
// and checksum included. It is valid as long as that event.
func (s *Scanner) Raw() []byte { return s.raw }

func (s *Scanner) verify(raw []byte, ev *Event) error {
	want := binary.LittleEndian.Uint32(raw[len(raw)-4:])
	var got uint32
	if ev.Type == FormatDescription && ev.Flags&FlagInUse != 0 {
		// The server computes the checksum before it sets the flag.
		var head [HeaderSize]byte
		copy(head[:], raw)
		head[17] &^= byte(FlagInUse)
		got = crc32.Update(crc32.ChecksumIEEE(head[:]), crc32.IEEETable, raw[HeaderSize:len(raw)-4])
	} else {
		got = crc32.ChecksumIEEE(raw[:len(raw)-4])
	}
	if got != want {
		return fmt.Errorf("%w: %s, %s event of %d bytes: its checksum is %08x, its bytes give %08x", ErrCorrupt, s.Place(ev.At), ev.Type, ev.Size, want, got)
	}
	return nil
}

// Unchecked makes Next not look at checksums.
func (s *Scanner) Unchecked() { s.check = false }

// Skip passes over the next event without reading its body.
func (s *Scanner) Skip(h *Header) error {
	if s.frames != nil {
		var ev Event
		return s.Next(&ev)
	}
	n := int(h.Size)
	if s.w-s.r >= n {
		s.r += n
		s.at += int64(n)
		return nil
	}
	rest := int64(n - (s.w - s.r))
	from := s.at
	s.at += int64(n)
	s.r, s.w = 0, 0
	if s.skip != nil {
		// A seek may pass the end: see that the event's last byte is there.
		if _, err := s.skip.Seek(rest-1, io.SeekCurrent); err != nil {
			return err
		}
		rest = 1
	}
	if k, err := io.CopyN(io.Discard, s.src, rest); err == io.EOF {
		return fmt.Errorf("%w: %s, the end of a %s event of %d bytes is missing", ErrCut, s.Place(from), h.Type, n)
	} else if err != nil || k != rest {
		return err
	}
	return nil
}

// Ahead returns a scanner over what is buffered beyond the next events, without
// moving s: its events are views of s's buffer, and it ends with io.ErrShortBuffer
// where what has arrived does. It is valid until s moves to another event.
func (s *Scanner) Ahead(a *Ahead) error {
	if s.frames == nil && s.w-s.r < window/2 && !s.eof {
		if err := s.fill(min(len(s.buf), window)); err != nil {
			return err
		}
	}
	*a = Ahead{s: s, at: s.at}
	return nil
}

// Ahead looks at buffered events.
type Ahead struct {
	s   *Scanner
	rel int // from s.r on
	at  int64
}

// Offset returns the offset of the event that Next did not return yet.
func (a *Ahead) Offset() int64 { return a.at }

// Next returns the next buffered event, unchecked.
func (a *Ahead) Next(ev *Event) error {
	skip := 0
	if a.s.frames != nil {
		skip = frameHead
	}
	b := a.s.buf[min(a.s.r+a.rel, a.s.w):a.s.w]
	if len(b) < skip+HeaderSize {
		return io.ErrShortBuffer
	}
	if skip > 0 && b[4] != 0 {
		return io.ErrShortBuffer // no event; reading on says what it is
	}
	ev.decode(b[skip:])
	n := int(ev.Size)
	if n < HeaderSize || len(b) < skip+n || skip > 0 && n+1 >= maxFrame {
		return io.ErrShortBuffer
	}
	ev.At, ev.End = a.at, a.at+int64(n)
	ev.Body = b[skip+HeaderSize : skip+n]
	if a.s.Format.Checksum {
		ev.Body = ev.Body[:max(0, len(ev.Body)-4)]
	}
	a.rel += skip + n
	a.at += int64(n)
	return nil
}
