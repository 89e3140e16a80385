package scan

import (
	"bytes"
	"cmp"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Compare orders two keys of a table that is Ordered as its source does.
func Compare(s *batch.Schema, a, b []byte) (int, error) {
	x, err := s.KeyValues(a)
	if err != nil {
		return 0, err
	}
	y, err := s.KeyValues(b)
	if err != nil {
		return 0, err
	}
	return CompareValues(s, x, y)
}

// CompareValues is Compare for keys that were decoded.
func CompareValues(s *batch.Schema, x, y []batch.Value) (int, error) {
	for i, k := range s.Key {
		c := 0
		switch s.Columns[k].Type {
		case batch.Uint8, batch.Uint16, batch.Uint32, batch.Uint64, batch.Year:
			c = cmp.Compare(x[i].Uint64(), y[i].Uint64())
		case batch.Bool, batch.Int8, batch.Int16, batch.Int32, batch.Int64, batch.Date, batch.Time, batch.DateTime, batch.Timestamp:
			c = cmp.Compare(x[i].Int64(), y[i].Int64())
		default:
			c = bytes.Compare(x[i].Bytes(), y[i].Bytes())
		}
		if c != 0 {
			return c, nil
		}
	}
	return 0, nil
}
