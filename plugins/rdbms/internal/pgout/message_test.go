package pgout

import (
	"errors"
	"testing"
)

func FuzzRead(f *testing.F) {
	f.Add([]byte("I\x00\x00\x40\x00N\x00\x02t\x00\x00\x00\x011n"))
	f.Add([]byte("U\x00\x00\x40\x00K\x00\x01t\x00\x00\x00\x011N\x00\x01u"))
	f.Add([]byte("R\x00\x00\x40\x00public\x00t\x00d\x00\x01\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff"))
	f.Add([]byte("T\x00\x00\x00\x01\x00\x00\x00\x40\x00"))
	f.Add([]byte("A\x00\x00\x00\x01\x00\x00\x00\x02"))
	f.Fuzz(func(t *testing.T, m []byte) {
		var row RowMsg
		_, e1 := ReadBegin(m)
		_, e2 := ReadCommit(m)
		_, e3 := ReadOrigin(m)
		_, e4 := ReadStream(m)
		_, e5 := ReadRelation(m)
		_, e6 := ReadTruncate(m)
		for _, err := range []error{e1, e2, e3, e4, e5, e6, ReadRow(m, &row)} {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%q: got %v, want it to wrap ErrCorrupt", m, err)
			}
		}
	})
}

func TestReadRow(t *testing.T) {
	var row RowMsg
	err := ReadRow([]byte("U\x00\x00\x40\x01K\x00\x02t\x00\x00\x00\x0217nN\x00\x02t\x00\x00\x00\x0218u"), &row)
	if err != nil || row.Relation != 0x4001 || !row.OldKey || string(row.Old[0].Data) != "17" || row.Old[1].Kind != 'n' || string(row.New[0].Data) != "18" || row.New[1].Kind != 'u' {
		t.Errorf("got %+v, %v", row, err)
	}
	for _, m := range []string{"", "I", "I\x00\x00\x40\x01", "I\x00\x00\x40\x01N\x00\x01t\x00\x00\x00\x05ab", "I\x00\x00\x40\x01N\x00\x01x", "I\x00\x00\x40\x01N\x00\x00more", "D\x00\x00\x40\x01N\x00\x00"} {
		if err := ReadRow([]byte(m), &row); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: got %v, want ErrCorrupt", m, err)
		}
	}
}
