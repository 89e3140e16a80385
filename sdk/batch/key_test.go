package batch

import (
	"errors"
	"testing"
)

func TestKeyValues(t *testing.T) {
	s := &Schema{ID: 1, Table: "t", Key: []int{2, 0}, Columns: []Column{
		{Name: "a", Type: String}, {Name: "b", Type: Int32}, {Name: "c", Type: Int64},
	}}
	key := append([]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "\x03abc"...)
	v, err := s.KeyValues(key)
	if err != nil || len(v) != 2 || v[0].Int64() != -2 || string(v[1].Bytes()) != "abc" {
		t.Fatalf("got %v, %v", v, err)
	}
	for _, bad := range [][]byte{key[:len(key)-1], append(key[:len(key):len(key)], 0), nil} {
		if _, err := s.KeyValues(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("key % x: got %v, want ErrCorrupt", bad, err)
		}
	}
}
