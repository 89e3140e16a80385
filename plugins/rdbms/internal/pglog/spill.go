package pglog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// spill keeps the messages of a streamed transaction until it commits: the first
// ones in memory, more of them in a file that nobody else can open. Losing it
// loses nothing, the server sends the transaction again.
type spill struct {
	dir     string
	buf     []byte // not in the file yet
	file    *os.File
	size    int64
	aborted map[uint32]bool // subtransactions that were rolled back
}

const spillBuffer = 512 << 10

// add keeps a message of a subtransaction.
func (s *spill) add(sub uint32, m []byte) error {
	s.buf = binary.LittleEndian.AppendUint32(s.buf, uint32(len(m)))
	s.buf = binary.LittleEndian.AppendUint32(s.buf, sub)
	s.buf = append(s.buf, m...)
	if len(s.buf) < spillBuffer {
		return nil
	}
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "datalink-pg-*")
		if err != nil {
			return fmt.Errorf("keep a transaction that has not committed yet: %w", err)
		}
		s.file = f
		// Without a name it goes with the process.
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
	}
	n, err := s.file.WriteAt(s.buf, s.size)
	s.size += int64(n)
	s.buf = s.buf[:0]
	if err != nil {
		return fmt.Errorf("keep a transaction that has not committed yet: %w", err)
	}
	return nil
}

// abort notes that a subtransaction was rolled back.
func (s *spill) abort(sub uint32) {
	if s.aborted == nil {
		s.aborted = map[uint32]bool{}
	}
	s.aborted[sub] = true
}

func (s *spill) close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
	s.buf = nil
}

// replay gives back the messages of a transaction that has committed.
type replay struct {
	spill *spill
	in    io.Reader
	all   bool // those that were rolled back too
	msg   []byte
}

func (s *spill) replay(all bool) *replay {
	r := &replay{spill: s, all: all}
	var file io.Reader = bytes.NewReader(nil)
	if s.file != nil {
		file = io.NewSectionReader(s.file, 0, s.size)
	}
	r.in = bufio.NewReaderSize(io.MultiReader(file, bytes.NewReader(s.buf)), 128<<10)
	return r
}

// next returns the next message, valid until the next call, and io.EOF at the end.
func (r *replay) next() ([]byte, error) {
	for {
		var head [8]byte
		if _, err := io.ReadFull(r.in, head[:]); err != nil {
			return nil, err
		}
		n := int(binary.LittleEndian.Uint32(head[:]))
		if cap(r.msg) < n {
			r.msg = make([]byte, n)
		}
		r.msg = r.msg[:n]
		if _, err := io.ReadFull(r.in, r.msg); err != nil {
			return nil, fmt.Errorf("read back a streamed transaction: %w", io.ErrUnexpectedEOF)
		}
		if r.all || !r.spill.aborted[binary.LittleEndian.Uint32(head[4:])] {
			return r.msg, nil
		}
	}
}
