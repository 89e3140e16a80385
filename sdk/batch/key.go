package batch

// KeyValues decodes key bytes of the schema's table: one value for each column
// of Key, in that order. The bytes do not say whether a value is raw; such a key
// is an error or reads as a wrong value, so take the key from an image where
// there is one. Errors wrap ErrCorrupt.
func (s *Schema) KeyValues(key []byte) ([]Value, error) {
	part := &Schema{Namespace: s.Namespace, Table: s.Table, Columns: make([]Column, len(s.Key))}
	for i, k := range s.Key {
		part.Columns[i] = s.Columns[k]
	}
	// Key bytes are the values of an image without bitmaps.
	return Image{schema: part, data: append([]byte{0}, key...)}.Values(nil)
}
