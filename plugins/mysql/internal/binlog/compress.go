package binlog

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Inflate undoes MariaDB's compression of the text of QUERY_COMPRESSED and the
// rows of …_ROWS_COMPRESSED events: one byte 0x80 | kind<<4 | size of size, the
// size big endian, then a zlib stream. The result uses dst's space.
func Inflate(src, dst []byte) ([]byte, error) {
	if len(src) == 0 {
		return nil, fmt.Errorf("%w: compressed part is empty", ErrCorrupt)
	}
	n := int(src[0] & 7)
	if src[0]&0x80 == 0 || src[0]>>4&7 != 0 || n < 1 || n > 4 || len(src) < 1+n {
		return nil, fmt.Errorf("%w: compressed part begins with %#02x, expected zlib (0x81 to 0x84)", ErrCorrupt, src[0])
	}
	size := 0
	for _, b := range src[1 : 1+n] {
		size = size<<8 | int(b)
	}
	return InflateZlib(src[1+n:], size, dst)
}

var zlibReaders sync.Pool

// InflateZlib inflates a zlib stream of exactly size bytes, using dst's space.
func InflateZlib(src []byte, size int, dst []byte) ([]byte, error) {
	r, _ := zlibReaders.Get().(io.ReadCloser)
	var err error
	if r == nil {
		r, err = zlib.NewReader(bytes.NewReader(src))
	} else {
		err = r.(zlib.Resetter).Reset(bytes.NewReader(src), nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	defer zlibReaders.Put(r)
	dst = dst[:0]
	// Grow with what arrives, not with what the size promises.
	for len(dst) < size {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		k, err := r.Read(dst[len(dst):min(cap(dst), size)])
		dst = dst[:len(dst)+k]
		if err != nil && len(dst) < size {
			return nil, fmt.Errorf("%w: %d of %d bytes inflate: %w", ErrCorrupt, len(dst), size, err)
		}
	}
	return dst, nil
}

// Payload is the envelope of a TRANSACTION_PAYLOAD event.
type Payload struct {
	Size int64 // of the events inside; 0 = not stated
	Data []byte
}

// DecodePayload reads the envelope of a TRANSACTION_PAYLOAD event.
func DecodePayload(body []byte, p *Payload) error {
	*p = Payload{}
	kind := uint64(0)
	for {
		if len(body) < 1 {
			return corrupt(TransactionPayload, "its header has no end")
		}
		if body[0] == 0 {
			p.Data = body[1:]
			break
		}
		field, v, rest, ok := tlv(body)
		if !ok {
			return corrupt(TransactionPayload, "header cut off")
		}
		body = rest
		n, ok := lenenc(v)
		if !ok {
			return corrupt(TransactionPayload, "header field %d", field)
		}
		switch field {
		case 2:
			kind = n
		case 3:
			p.Size = int64(n)
		}
	}
	switch kind {
	case 0:
		return nil
	case 255:
		return corrupt(TransactionPayload, "it says that it is not compressed; expected zstd")
	}
	return corrupt(TransactionPayload, "compression kind %d; expected 0 (zstd)", kind)
}

func tlv(b []byte) (field byte, v, rest []byte, ok bool) {
	if len(b) < 2 || len(b) < 2+int(b[1]) {
		return 0, nil, nil, false
	}
	n := 2 + int(b[1])
	return b[0], b[2:n], b[n:], true
}

// lenenc reads a length-encoded integer that fills v.
func lenenc(v []byte) (uint64, bool) {
	n, k := LenEnc(v)
	return n, k == len(v) && k > 0
}

// LenEnc reads a length-encoded integer and returns it with its size, which is
// 0 when it is cut off or NULL.
func LenEnc(b []byte) (v uint64, size int) {
	if len(b) == 0 {
		return 0, 0
	}
	switch {
	case b[0] < 251:
		return uint64(b[0]), 1
	case b[0] == 252 && len(b) >= 3:
		return uint64(binary.LittleEndian.Uint16(b[1:])), 3
	case b[0] == 253 && len(b) >= 4:
		return uint64(b[1]) | uint64(b[2])<<8 | uint64(b[3])<<16, 4
	case b[0] == 254 && len(b) >= 9:
		return binary.LittleEndian.Uint64(b[1:]), 9
	}
	return 0, 0
}

// Decompressor streams the inside of compressed transactions, one at a time,
// within a limit of memory for its window.
type Decompressor struct{ d *zstd.Decoder }

// NewDecompressor returns a Decompressor whose windows are at most limit bytes;
// 0 = 64 MiB.
func NewDecompressor(limit int) (*Decompressor, error) {
	if limit <= 0 {
		limit = 64 << 20
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(limit)), zstd.WithDecoderMaxMemory(1<<40))
	if err != nil {
		return nil, err
	}
	return &Decompressor{d}, nil
}

// Open begins with the stream in src. It ends the stream opened before.
func (d *Decompressor) Open(src io.Reader) (io.Reader, error) {
	if err := d.d.Reset(src); err != nil {
		return nil, fmt.Errorf("%w: compressed transaction: %w", ErrCorrupt, err)
	}
	return d.d, nil
}

// All inflates a stream of at most limit bytes into dst.
func (d *Decompressor) All(src, dst []byte, limit int) ([]byte, error) {
	in, err := d.Open(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := in.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) > limit:
			return nil, fmt.Errorf("%w: compressed transaction inflates to more than the %d bytes it names", ErrCorrupt, limit)
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return nil, fmt.Errorf("%w: compressed transaction: %w", ErrCorrupt, err)
		}
	}
}

// Close frees the decoder.
func (d *Decompressor) Close() { d.d.Close() }
