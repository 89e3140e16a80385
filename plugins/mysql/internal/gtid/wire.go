package gtid

import (
	"encoding/binary"
	"errors"
)

// AppendWire appends the set as COM_BINLOG_DUMP_GTID and PREVIOUS_GTIDS carry it
// (mysql/gtid: Gtid_set::encode). The form with tags is taken only where there are
// some, as servers before 8.3 do not know it.
func (s *Set) AppendWire(dst []byte) []byte {
	tagged := false
	for i := range s.parts {
		tagged = tagged || s.parts[i].Tag != ""
	}
	n := uint64(len(s.parts))
	if tagged {
		n = n<<8 | 1 | 1<<56
	}
	dst = binary.LittleEndian.AppendUint64(dst, n)
	for i := range s.parts {
		p := &s.parts[i]
		dst = append(dst, p.UUID[:]...)
		if tagged {
			dst = append(append(dst, byte(len(p.Tag)<<1)), p.Tag...)
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(p.in)))
		for _, in := range p.in {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(in.From))
			dst = binary.LittleEndian.AppendUint64(dst, uint64(in.To)+1)
		}
	}
	return dst
}

var errWire = errors.New("malformed GTID set")

// ParseWire is the inverse of AppendWire.
func ParseWire(b []byte) (Set, error) {
	var s Set
	if len(b) < 8 {
		return s, errWire
	}
	n, tagged := binary.LittleEndian.Uint64(b), b[7] == 1
	if tagged {
		n = n << 8 >> 16
	}
	b = b[8:]
	for ; n > 0; n-- {
		if len(b) < 16 {
			return s, errWire
		}
		var src Source
		copy(src.UUID[:], b)
		b = b[16:]
		if tagged {
			if len(b) < 1 || len(b) < 1+int(b[0]>>1) {
				return s, errWire
			}
			src.Tag = string(b[1 : 1+int(b[0]>>1)])
			b = b[1+len(src.Tag):]
		}
		if len(b) < 8 {
			return s, errWire
		}
		k := binary.LittleEndian.Uint64(b)
		if b = b[8:]; k > uint64(len(b)/16) {
			return s, errWire
		}
		for ; k > 0; k-- {
			from, to := int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
			if from < 1 || to <= from {
				return s, errWire
			}
			s.add(src, Interval{from, to - 1})
			b = b[16:]
		}
	}
	return s, nil
}
