package reader

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk/batch"
)

const (
	// payloadInMemory is the size up to which a compressed transaction is read as
	// one event; larger ones are streamed from the file.
	payloadInMemory = 8 << 20
	// inflateInMemory is the size up to which the inside of a compressed
	// transaction is inflated once, as a whole.
	inflateInMemory = 4 << 20
)

// payload opens the inside of a compressed transaction that was read as one
// event.
func (r *Reader) payload(ev *binlog.Event) error {
	var p binlog.Payload
	if err := binlog.DecodePayload(ev.Body, &p); err != nil {
		return err
	}
	if err := r.decompressor(); err != nil {
		return err
	}
	open := func() (io.Reader, func() error, error) {
		in, err := r.zstd.Open(bytes.NewReader(p.Data))
		return in, func() error { return nil }, err
	}
	if p.Size > 0 && p.Size <= inflateInMemory {
		var err error
		if r.inflated, err = r.zstd.All(p.Data, r.inflated[:0], inflateInMemory); err != nil {
			return err
		}
		open = func() (io.Reader, func() error, error) {
			return bytes.NewReader(r.inflated), func() error { return nil }, nil
		}
	}
	return r.enterPayload(ev.At, open)
}

// payloadFile opens the inside of the compressed transaction that is next in scan,
// and too large to be held in memory.
func (r *Reader) payloadFile(scan *binlog.Scanner, h *binlog.Header) error {
	at := scan.Offset()
	r.ev.At, r.ev.Header = at, *h
	reopen := func(at int64) (io.ReadCloser, error) { return r.files[r.file].OpenAt(at) }
	if n := len(r.levels); n > 0 {
		sp := r.levels[n-1].spool
		reopen = func(at int64) (io.ReadCloser, error) { return io.NopCloser(sp.at(at)), nil }
	}
	if err := r.decompressor(); err != nil {
		return err
	}
	open := func() (io.Reader, func() error, error) {
		src, err := reopen(at)
		if err != nil {
			return nil, nil, err
		}
		b := &payloadBody{src: src, sum: crc32.NewIEEE(), checksum: r.scan.Format.Checksum}
		size := int64(h.Size)
		if b.checksum {
			size -= 4
		}
		b.r = bufio.NewReaderSize(io.TeeReader(io.LimitReader(src, size), b.sum), 64<<10)
		_, err = b.r.Discard(binlog.HeaderSize)
		if err == nil {
			head, _ := b.r.Peek(64)
			var p binlog.Payload
			if err = binlog.DecodePayload(head, &p); err == nil {
				_, err = b.r.Discard(len(head) - len(p.Data))
			}
		}
		if err != nil {
			_ = src.Close()
			return nil, nil, err
		}
		in, err := r.zstd.Open(b.r)
		return in, b.close, err
	}
	if err := r.enterPayload(at, open); err != nil {
		return err
	}
	return scan.Skip(h)
}

// payloadBody is the body of a TRANSACTION_PAYLOAD event that is streamed.
type payloadBody struct {
	src      io.ReadCloser
	r        *bufio.Reader
	sum      hash.Hash32
	checksum bool
}

// close reads what is left and checks the checksum.
func (b *payloadBody) close() error {
	defer b.src.Close()
	if _, err := io.Copy(io.Discard, b.r); err != nil {
		return err
	}
	if !b.checksum {
		return nil
	}
	var tail [4]byte
	if _, err := io.ReadFull(b.src, tail[:]); err != nil {
		return fmt.Errorf("%w: checksum of a compressed transaction: %w", binlog.ErrCut, err)
	}
	if want, got := binary.LittleEndian.Uint32(tail[:]), b.sum.Sum32(); want != got {
		return fmt.Errorf("%w: compressed transaction: its checksum is %08x, its bytes give %08x", binlog.ErrCorrupt, want, got)
	}
	return nil
}

func (r *Reader) decompressor() error {
	if r.zstd != nil {
		return nil
	}
	d, err := binlog.NewDecompressor(int(r.cfg.MaxWindow))
	r.zstd = d
	return err
}

// enterPayload goes into a compressed transaction. It is read twice: how it ends
// decides whether anything of it is delivered.
func (r *Reader) enterPayload(at int64, open func() (io.Reader, func() error, error)) error {
	format := r.scan.Format
	format.Checksum = false // there is one of the payload as a whole
	name := fmt.Sprintf("%s, inside of the compressed transaction at offset %d,", r.scan.Name(), at)
	scan := func() (func() error, error) {
		in, end, err := open()
		if err != nil {
			return nil, err
		}
		if r.inner == nil {
			r.inner = binlog.NewScanner(name, in, 0, format, int(r.cfg.MaxEvent))
		} else {
			r.inner.Reset(name, in, 0, format)
		}
		return end, nil
	}
	end, err := scan()
	if err != nil {
		return err
	}
	var x binlog.Indexer
	if err := binlog.IndexAll(r.inner, &x); err != nil {
		_ = end()
		return err
	}
	if err := end(); err != nil {
		return err
	}
	if x.Outcome == binlog.Cut {
		return fmt.Errorf("%w: %w", binlog.ErrCorrupt, x.Err)
	}
	if end, err = scan(); err != nil {
		return err
	}
	r.levels = append(r.levels, level{scan: r.inner, until: -1, bounds: x.Bounds, close: func() { _ = end() }})
	return nil
}

// inside reads the next event of the innermost level.
func (r *Reader) inside(l *level, out *batch.Builder) error {
	var ev binlog.Event
	err := io.EOF
	if l.spool != nil && l.scan.Offset() < l.until {
		var h binlog.Header
		if err := l.scan.Peek(&h); err != nil {
			return r.where(err)
		}
		if h.Type == binlog.TransactionPayload && h.Size > payloadInMemory {
			return r.where(r.payloadFile(l.scan, &h))
		}
	}
	if l.until < 0 || l.scan.Offset() < l.until {
		err = l.scan.Next(&ev)
	}
	if err == io.EOF {
		l.close()
		r.levels = r.levels[:len(r.levels)-1]
		return r.finish(out)
	}
	if err != nil {
		return r.where(err)
	}
	return r.event(out, &ev, &l.bounds)
}
