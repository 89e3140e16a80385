package batch

import "encoding/binary"

// Encoded is one column of an image as it is encoded: for types of variable
// width with the length before it. Columns without a value have no bytes.
type Encoded struct {
	State ValueState
	Bytes []byte
}

// Payload returns the bytes without the length before them.
func (e Encoded) Payload(t Type) []byte {
	if t.Width() != 0 && e.State != Raw {
		return e.Bytes
	}
	if _, k := binary.Uvarint(e.Bytes); k > 0 {
		return e.Bytes[k:]
	}
	return nil
}

// NewImage returns a view of data as an image of s. Nothing is checked before
// the image is read.
func NewImage(s *Schema, data []byte) Image { return Image{schema: s, data: data} }

// Columns finds the encoded columns of the image without decoding them. Dst is
// grown when needed; what is returned refers to the image. Errors wrap
// ErrCorrupt.
func (im Image) Columns(dst []Encoded) ([]Encoded, error) {
	cols := im.schema.Columns
	n := len(cols)
	dst = grow(dst, n)
	data := im.data
	if len(data) < 1 {
		return dst, im.corrupt("flags", "cut off")
	}
	flags := data[0]
	if flags&^imageAll != 0 {
		return dst, im.corrupt("flags", "unknown bits")
	}
	nb, pos := (n+7)/8, 1
	var maps [4][]byte
	for k := range maps {
		if flags&(1<<k) == 0 {
			continue
		}
		if len(data)-pos < nb {
			return dst, im.corrupt("bitmaps", "cut off")
		}
		maps[k] = data[pos : pos+nb]
		pos += nb
	}
	for i := range n {
		state := Present
		switch {
		case bit(maps[1], i):
			state = Null
		case bit(maps[0], i):
			state = Absent
		case bit(maps[2], i):
			state = Unchanged
		case bit(maps[3], i):
			state = Raw
		}
		if state < Present {
			dst[i] = Encoded{State: state}
			continue
		}
		w := int(widths[cols[i].Type])
		if w == 0 || state == Raw {
			l, k := binary.Uvarint(data[pos:])
			if k <= 0 || l > uint64(len(data)-pos-k) {
				return dst, im.corrupt(cols[i].Name, "value cut off")
			}
			w = k + int(l)
		}
		if len(data)-pos < w {
			return dst, im.corrupt(cols[i].Name, "value cut off")
		}
		dst[i] = Encoded{State: state, Bytes: data[pos : pos+w : pos+w]}
		pos += w
	}
	if pos != len(data) {
		return dst, im.corrupt("end", "bytes follow the last column")
	}
	return dst, nil
}

// AppendImage appends an encoded image that holds the columns, which are those
// of one schema in order.
func AppendImage(dst []byte, columns []Encoded) []byte {
	at := len(dst)
	var flags byte = imageNull
	bits := [...]byte{Absent: imageAbsent, Null: imageNull, Unchanged: imageUnchanged, Present: 0, Raw: imageRaw}
	for i := range columns {
		flags |= bits[columns[i].State]
	}
	nb := (len(columns) + 7) / 8
	dst = append(dst, flags)
	for f := byte(1); f <= imageRaw; f <<= 1 {
		if flags&f == 0 {
			continue
		}
		from := len(dst)
		for range nb {
			dst = append(dst, 0)
		}
		for i := range columns {
			if bits[columns[i].State] == f {
				dst[from+i>>3] |= 1 << (i & 7)
			}
		}
	}
	dst[at] = flags
	for i := range columns {
		dst = append(dst, columns[i].Bytes...)
	}
	return dst
}

// Overlay writes over base, which is changed, the columns of over that have a
// value or are NULL. Both are those of one schema.
func Overlay(base, over []Encoded) {
	for i := range over {
		switch {
		case over[i].State == Null || over[i].State >= Present:
			base[i] = over[i]
		case over[i].State == Unchanged && base[i].State == Absent:
			base[i].State = Unchanged
		}
	}
}
