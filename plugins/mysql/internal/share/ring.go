package share

import (
	"encoding/binary"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// packetHead is size, sequence number, and the byte that says that an event follows.
const packetHead = 5

// place is a boundary between events of the server's log.
type place struct {
	file string
	off  int64
}

// boundary is where an event begins with which reading can begin.
type boundary struct {
	place
	pos int64
	seq byte
}

// ring holds the last packets of a dump. Places in it are counted from the first
// byte that it ever held.
type ring struct {
	buf       []byte
	base, end int64
	seq       byte // of the next packet
	at        place
	index     []boundary
}

func newRing(size int, at place) *ring {
	return &ring{buf: make([]byte, size), seq: 1, at: at}
}

// room is how many of the oldest bytes go where n more come.
func (r *ring) room(n int) int64 { return r.end + int64(n) - int64(len(r.buf)) }

// drop forgets the bytes before pos.
func (r *ring) drop(pos int64) {
	if pos <= r.base {
		return
	}
	r.base = pos
	k := 0
	for k < len(r.index) && r.index[k].pos < pos {
		k++
	}
	if k > 1024 || k == len(r.index) {
		r.index = r.index[:copy(r.index, r.index[k:])]
	}
}

// event appends an event, for which drop has made room, as a packet.
func (r *ring) event(ev *binlog.Event, raw []byte) {
	if begins(ev.Type) {
		r.index = append(r.index, boundary{place: place{r.at.file, ev.At}, pos: r.end, seq: r.seq})
	}
	var head [packetHead]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(raw)+1)|uint32(r.seq)<<24)
	r.put(head[:])
	r.put(raw)
	r.seq++
}

func (r *ring) put(p []byte) {
	k := copy(r.buf[r.end%int64(len(r.buf)):], p)
	copy(r.buf, p[k:])
	r.end += int64(len(p))
}

// gap forgets everything; what is before it and after it are never one stream.
func (r *ring) gap() {
	r.end++
	r.base, r.index = r.end, r.index[:0]
}

// read copies what follows pos, at most as much as dst takes.
func (r *ring) read(dst []byte, pos int64) int {
	n := int(min(int64(len(dst)), r.end-pos))
	from := pos % int64(len(r.buf))
	k := copy(dst[:n], r.buf[from:])
	copy(dst[k:n], r.buf)
	return n
}

// find returns where reading from a place of the log begins.
func (r *ring) find(p place) (pos int64, seq byte, ok bool) {
	if anyPlace || p == r.at {
		return r.end, r.seq, true
	}
	for i := len(r.index) - 1; i >= 0; i-- {
		if b := &r.index[i]; b.place == p && b.pos >= r.base {
			return b.pos, b.seq, true
		}
	}
	return 0, 0, false
}

// begins reports whether a transaction can begin with an event of that type.
func begins(t binlog.Type) bool {
	switch t {
	case binlog.GTID, binlog.AnonymousGTID, binlog.GTIDTagged, binlog.MariaGTID:
		return true
	}
	return false
}
