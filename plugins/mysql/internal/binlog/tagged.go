package binlog

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// tagged reads a GTID_TAGGED event, which is written in the self-describing
// format of mysql::serialization: format version, size, last field that is not
// ignorable, then field id and value, each number a varlen integer (the count of
// trailing one bits of its first byte says how many bytes follow).
func (g *Group) tagged(b []byte) error {
	r := varReader{b: b}
	if v := r.uint(); v != 1 {
		return corrupt(GTIDTagged, "format version %d", v)
	}
	r.uint() // size
	r.uint() // last field that is not ignorable
	var uuid [16]byte
	var gno int64
	var tag []byte
fields:
	for len(r.b) > 0 && !r.bad {
		switch id := r.uint(); id {
		case 0: // flags, one byte
			r.uint()
		case 1: // uuid, byte for byte
			for i := range uuid {
				uuid[i] = byte(r.uint())
			}
		case 2:
			gno = r.int()
		case 3:
			tag = r.bytes(int(r.uint()))
		case 4, 5: // logical clocks
			r.int()
		case 6:
			g.Committed = int64(r.uint())
			break fields
		default:
			break fields
		}
	}
	if r.bad || gno <= 0 {
		return corrupt(GTIDTagged, "cut off, or without a number")
	}
	g.UUID, g.Tag, g.Number = uuid, tag, gno
	g.ID = appendUUID(g.ID, uuid[:])
	if len(tag) > 0 {
		g.ID = append(append(g.ID, ':'), tag...)
	}
	g.ID = strconv.AppendInt(append(g.ID, ':'), gno, 10)
	return nil
}

type varReader struct {
	b   []byte
	bad bool
}

func (r *varReader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		r.b = nil
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *varReader) uint() uint64 {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	more := bits.TrailingZeros8(^r.b[0]) // 0 to 8
	raw := r.bytes(1 + more)
	if raw == nil {
		return 0
	}
	if more == 8 {
		return binary.LittleEndian.Uint64(raw[1:])
	}
	var w [8]byte
	copy(w[:], raw)
	return binary.LittleEndian.Uint64(w[:]) >> (more + 1)
}

// int undoes the zigzag of signed numbers.
func (r *varReader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}
