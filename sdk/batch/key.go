package batch

import "encoding/binary"

// rawKey stands before a raw value in key bytes, where no bitmap tells it from a
// value of the column's type: it is no length that an encoder writes.
var rawKey = [2]byte{0x80, 0x00}

// KeyValues decodes key bytes of the schema's table: one value for each column
// of Key, in that order. Errors wrap ErrCorrupt.
func (s *Schema) KeyValues(key []byte) ([]Value, error) {
	part := &Schema{Namespace: s.Namespace, Table: s.Table, Columns: make([]Column, len(s.Key))}
	// The values in an image of their own, with a bitmap of the raw ones.
	n := (len(s.Key) + 7) / 8
	data := make([]byte, 1+n, 1+n+len(key))
	data[0] = imageRaw
	im := Image{schema: part}
	for i, k := range s.Key {
		part.Columns[i] = s.Columns[k]
		size := s.Columns[k].Type.Width()
		if size == 0 {
			if len(key) > 1 && [2]byte(key) == rawKey {
				data[1+(i>>3)] |= 1 << (i & 7)
				key = key[2:]
			}
			l, w := binary.Uvarint(key)
			if w <= 0 || l > uint64(len(key)-w) {
				return nil, im.corrupt("key column "+part.Columns[i].Name, "cut off")
			}
			size = w + int(l)
		}
		if size > len(key) {
			return nil, im.corrupt("key column "+part.Columns[i].Name, "cut off")
		}
		data = append(data, key[:size]...)
		key = key[size:]
	}
	im.data = append(data, key...)
	return im.Values(nil)
}
