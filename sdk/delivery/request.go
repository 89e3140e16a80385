package delivery

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// request is a block on its way. Once all its items are committed it is used
// again.
type request struct {
	seq   uint64
	req   *wire.WriteRequest
	block batch.Block
	txs   []txInfo
	size  int
	moved map[string][]byte // dispatcher.moved before it, where it begins inside a transaction
	left  int               // items not committed yet, and one while it is being dispatched; under Engine.mu
}

// txInfo is what items need to know of their source transaction.
type txInfo struct {
	id     uint64       // rises along the stream
	start  sdk.Position // before the transaction
	inside sdk.Position // what an ordinal is added to
	known  bool         // they may be stored
}

// within is the position inside the transaction before the change with that
// ordinal.
func (t *txInfo) within(ordinal uint64) sdk.Position {
	p := t.inside
	p.Ordinal = ordinal
	return p
}

// mark is a place in the stream by its blocks: what comes before it is done.
type mark struct {
	seq     uint64
	tx      int // entry of the block's transaction table
	ordinal uint64
}

func (m mark) covers(seq uint64, tx int, ordinal uint64) bool {
	switch {
	case seq != m.seq:
		return seq < m.seq
	case tx != m.tx:
		return tx < m.tx
	}
	return ordinal < m.ordinal
}

// before reports whether m comes before o.
func (m mark) before(o mark) bool {
	switch {
	case m.seq != o.seq:
		return m.seq < o.seq
	case m.tx != o.tx:
		return m.tx < o.tx
	}
	return m.ordinal < o.ordinal
}

func (m mark) passed(seq uint64, tx int) bool {
	return seq < m.seq || seq == m.seq && tx < m.tx
}

// place is where a lane's progress may stand.
type place struct {
	pos  sdk.Position
	mark mark
	set  bool
}

type itemKind uint8

const (
	itemEvent itemKind = iota
	itemAside          // dead letters of the request
	itemGroup          // a rendezvous of lanes
)

// Parts of an event that an item stands for. A change of key may be two parts,
// in one lane or in two.
const (
	partWhole uint8 = iota
	partOld
	partNew
	partBoth
)

// item is one event in a lane's queue.
type item struct {
	kind    itemKind
	parts   uint8
	inner   bool // changes of its transaction before it belong to the lane too
	cut     bool // a target transaction may end before it
	stays   bool // another row has taken the place of the one that is removed
	at      int  // event in the block
	txAt    int  // entry in the block
	ordinal uint64
	tx      *txInfo
	plan    *plan
	req     *request
	group   *group
	waits   []wait
	ev      batch.Event
}

// before is the place before the item.
func (it *item) before() place {
	if it.kind == itemGroup && it.group.from.set {
		return it.group.from
	}
	p := place{pos: it.tx.start, mark: mark{seq: it.req.seq, tx: it.txAt}, set: it.tx.known}
	if it.inner {
		p.pos, p.mark.ordinal = it.tx.within(it.ordinal), it.ordinal
	}
	return p
}

// begins reports whether a target transaction may end between prev and it.
func (it *item) begins(prev *item) bool {
	return it.known() && (it.cut || it.tx.id != prev.tx.id)
}

// apart reports whether the place between prev and it has a position at all.
func (it *item) apart(prev *item) bool {
	return it.known() && (it.tx.id != prev.tx.id || it.ordinal != prev.ordinal)
}

// known reports whether the place before the item may be stored.
func (it *item) known() bool { return it.tx.known || it.kind == itemGroup && it.group.from.set }

// wait says that lane must have committed its item n.
type wait struct {
	lane int32
	n    uint64
}

// group is an item that several lanes reach together and commit as one target
// transaction which advances all of them.
type group struct {
	lanes   []int32
	items   []item   // events, in order
	hold    *request // not acknowledged before the group is committed
	from    place    // where it begins, if that is not said by its place in the queues
	after   place    // not set: the lanes stay where they are
	arrived int
	done    bool
	seen    map[string][][]byte
	whole   *batch.KeyRange // takes the place of that of the event
}
