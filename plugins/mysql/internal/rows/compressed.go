package rows

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
)

// decompress undoes the compression of a MariaDB COMPRESSED column: one byte,
// then the value as it is (0), or the size and a deflate stream. The byte holds
// the method in its high half (8 = zlib), bit 3 says that the stream has no
// zlib head, and the low three are the bytes of the size, which is big endian
// (sql/field_comp.cc).
func (it *Iter) decompress(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return b, nil
	}
	if b[0] == 0 {
		return b[1:], nil
	}
	if b[0]>>4 != 8 {
		return nil, fmt.Errorf("%w: compressed column begins with %#02x, expected method 8 (zlib)", ErrCorrupt, b[0])
	}
	n := int(b[0] & 7)
	if n < 1 || n > 4 || len(b) < 1+n {
		return nil, errCut
	}
	size := 0
	for i := range n {
		size = size<<8 | int(b[1+i])
	}
	src := b[1+n:]
	if b[0]&8 == 0 && len(src) > 2 {
		src = src[2:] // head of zlib
	}
	r := flate.NewReader(bytes.NewReader(src))
	var out bytes.Buffer
	if _, err := io.Copy(&out, io.LimitReader(r, int64(size)+1)); err != nil || out.Len() != size {
		return nil, fmt.Errorf("%w: compressed column inflates to %d of %d bytes: %v", ErrCorrupt, out.Len(), size, err)
	}
	return out.Bytes(), nil
}
