package batch

import (
	"encoding/binary"
	"unsafe"
)

// Cover says how much of a transaction one of the progress points given to Open
// holds already.
type Cover struct {
	Point int    // place of the point in the list given to Open
	Upto  uint64 // changes done inside the transaction; 0 = all of it
}

// Tx is one entry of a block's transaction table: a run of events that belong to
// one source transaction. A transaction larger than a block has an entry in each
// block it passes through.
type Tx struct {
	Begins, Ends bool   // the transaction begins, ends with this entry
	First, Count int    // its events in the block
	Ordinal      uint64 // changes of the transaction that came before this entry
	// Start is the position before the transaction, in the reader's own bytes. It
	// is set where the entry does not end the transaction, and gives, with an
	// ordinal, a position inside it.
	Start []byte
	// End is the position after the transaction; empty where the source gives
	// none here, and then no progress is stored at this place. It must be empty
	// where it would be incomparable with a point given to Open: after a fail-over
	// to a server with another order, until the transactions that the point holds
	// have passed. A position never goes back then.
	End       []byte
	Committed int64  // microseconds since the epoch at the source; 0 = unknown
	ID        string // GTID or the like, for messages
	Covers    []Cover
}

const (
	txBegins = 1
	txEnds   = 2
	txStart  = 4
	txEnd    = 8
)

func appendTx(dst []byte, t *Tx) []byte {
	var flags byte
	if t.Begins {
		flags |= txBegins
	}
	if t.Ends {
		flags |= txEnds
	}
	if len(t.Start) > 0 {
		flags |= txStart
	}
	if len(t.End) > 0 {
		flags |= txEnd
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(t.First))
	dst = binary.AppendUvarint(dst, uint64(t.Count))
	dst = binary.AppendUvarint(dst, t.Ordinal)
	if len(t.Start) > 0 {
		dst = appendBytes(dst, t.Start)
	}
	if len(t.End) > 0 {
		dst = appendBytes(dst, t.End)
	}
	dst = binary.AppendVarint(dst, t.Committed)
	dst = appendString(dst, t.ID)
	dst = binary.AppendUvarint(dst, uint64(len(t.Covers)))
	for _, c := range t.Covers {
		dst = binary.AppendUvarint(dst, uint64(c.Point))
		dst = binary.AppendUvarint(dst, c.Upto)
	}
	return dst
}

func (c *cursor) tx(t *Tx) {
	flags := c.byte("flags")
	if c.err == nil && flags&^(txBegins|txEnds|txStart|txEnd) != 0 {
		c.fail("flags", "unknown bits")
	}
	*t = Tx{Begins: flags&txBegins != 0, Ends: flags&txEnds != 0, Covers: t.Covers[:0]}
	t.First = int(c.uint32("first event"))
	t.Count = int(c.uint32("event count"))
	t.Ordinal = c.uvarint("ordinal")
	if flags&txStart != 0 {
		t.Start = c.bytes("start position")
	}
	if flags&txEnd != 0 {
		t.End = c.bytes("end position")
	}
	t.Committed = c.varint("commit time")
	if id := c.bytes("id"); len(id) > 0 {
		// All ids are parts of one string: an allocation a block, not one each.
		if c.text == "" {
			c.text = string(c.data)
		}
		t.ID = c.text[c.pos-len(id) : c.pos]
	}
	n := c.count("covers", 2, unsafe.Sizeof(Cover{}))
	if n > cap(t.Covers) {
		t.Covers = make([]Cover, 0, n)
	}
	for range n {
		t.Covers = append(t.Covers, Cover{Point: int(c.uint32("point")), Upto: c.uvarint("upto")})
	}
	if c.err == nil && !t.Ends && len(t.Start) == 0 {
		c.fail("start position", "missing, and the transaction does not end here")
	}
}
