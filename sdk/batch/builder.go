package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMisuse is wrapped when a Builder is called out of order or a row does not
// fit its schema: a fault in the caller, not in the data.
var ErrMisuse = errors.New("batch builder misused")

// Side names one of the two images of a row event.
type Side uint8

// The images of a row.
const (
	BeforeImage Side = iota
	AfterImage
)

// Builder appends events to a block. It is not safe for concurrent use. After an
// error of a row the row is gone and the block is as it was before it.
//
// In steady state a Builder allocates nothing: its buffers are kept by Reset.
type Builder struct {
	limits Limits
	buf    []byte   // header and events
	starts []uint32 // of the events
	txs    []Tx
	txBuf  []byte
	defs   []byte
	nDefs  int
	known  map[uint32]*Schema // defined on the stream
	inTx   bool
	next   uint64 // ordinal of the next change
	held   bool   // all changes get the ordinal next

	// The row being built.
	inRow      bool
	inImage    bool
	schema     *Schema
	info       *schemaInfo
	infos      map[*Schema]*schemaInfo
	event      int // where the event starts
	imageAt    int // where the image's length stands
	side       Side
	imageFlags [2]byte // of the images of the row
	col        int
	spans      [2][]span // of the key columns in each image
	keyBuf     [2][]byte
	err        error
	varStart   int
}

type span struct {
	from, to int
	raw      bool
}

type schemaInfo struct {
	key     []int // by column: its place in the key, -1 for others
	nBitmap int
}

// NewBuilder returns an empty Builder.
func NewBuilder(limits Limits) *Builder {
	b := &Builder{limits: limits.withDefaults(), known: map[uint32]*Schema{}, infos: map[*Schema]*schemaInfo{}}
	b.Reset()
	return b
}

// Reset drops all events and keeps buffers and the knowledge of which schemas
// the stream has defined. The bytes that Finish returned become invalid.
func (b *Builder) Reset() {
	if cap(b.buf) < headerSize {
		b.buf = make([]byte, headerSize, headerSize+b.limits.Full+b.limits.Full/4)
	}
	b.buf = b.buf[:headerSize]
	b.starts = b.starts[:0]
	b.txs = b.txs[:0]
	b.txBuf = b.txBuf[:0]
	b.defs = b.defs[:0]
	b.nDefs = 0
	b.inTx, b.inRow, b.inImage, b.held, b.err = false, false, false, false, nil
}

// Forget drops the knowledge of which schemas the stream has defined, so that
// the next block defines those it uses. Call it when the receiver is new.
func (b *Builder) Forget() {
	clear(b.known)
	b.schema = nil
}

// Len returns the number of events.
func (b *Builder) Len() int { return len(b.starts) }

// Size returns the bytes of events so far.
func (b *Builder) Size() int { return len(b.buf) - headerSize }

// Full reports whether the block has reached its preferred size: a connector
// returns from Next soon after.
func (b *Builder) Full() bool {
	return len(b.buf)-headerSize >= b.limits.Full || len(b.starts) >= b.limits.Events
}

// Empty reports whether there is nothing to send: neither events nor
// transaction entries nor schemas.
func (b *Builder) Empty() bool {
	return len(b.starts) == 0 && len(b.txs) == 0 && b.nDefs == 0
}

// Limits returns the limits in force.
func (b *Builder) Limits() Limits { return b.limits }

// Define puts the definition of s into the block unless the stream has it. Rows
// do this by themselves.
func (b *Builder) Define(s *Schema) error {
	old := b.known[s.ID]
	if old == s {
		return nil
	}
	def := AppendSchema(nil, s)
	if old != nil {
		if bytes.Equal(def, AppendSchema(nil, old)) {
			b.known[s.ID] = s
			return nil
		}
		return fmt.Errorf("%w: schema id %d of %s is that of another layout of %s", ErrMisuse, s.ID, s.Name(), old.Name())
	}
	if s.ID == 0 {
		return fmt.Errorf("%w: schema of %s has id 0", ErrMisuse, s.Name())
	}
	b.known[s.ID] = s
	b.defs = appendBytes(b.defs, def)
	b.nDefs++
	return nil
}

// BeginTx opens an entry of the transaction table. Begins and Ordinal say
// whether it continues one of an earlier block; Ends and End are given to EndTx.
func (b *Builder) BeginTx(t Tx) error {
	if b.inTx {
		return fmt.Errorf("%w: a transaction entry is open", ErrMisuse)
	}
	if b.inEntries() != len(b.starts) {
		return fmt.Errorf("%w: %d events stand outside of a transaction entry", ErrMisuse, len(b.starts)-b.inEntries())
	}
	t.First, t.Count = len(b.starts), 0
	b.txs = append(b.txs, t)
	b.inTx = true
	b.next, b.held = t.Ordinal, false
	return nil
}

// OpenTx reports whether a transaction entry is open, and the ordinal of the
// next change in it.
func (b *Builder) OpenTx() (open bool, next uint64) { return b.inTx, b.next }

// EndTx closes the entry. With ends the transaction ends here and end is the
// position after it (empty where the source gives none); otherwise it goes on in
// the next block, and start is the position before it.
func (b *Builder) EndTx(ends bool, start, end []byte) error {
	if !b.inTx || b.inRow {
		return fmt.Errorf("%w: no transaction entry is open, or a row is", ErrMisuse)
	}
	if !ends && len(start) == 0 {
		return fmt.Errorf("%w: a transaction that goes on needs the position before it", ErrMisuse)
	}
	t := &b.txs[len(b.txs)-1]
	t.Ends, t.Count = ends, len(b.starts)-t.First
	if len(start) > 0 {
		t.Start = start
	}
	t.End = end
	b.txBuf = appendTx(b.txBuf, t)
	b.inTx = false
	return nil
}

// AppendTx appends a whole entry as it stands, for code that copies blocks: its
// events are those appended since the last entry, its First and Count are set here.
func (b *Builder) AppendTx(t Tx) {
	t.First = b.inEntries()
	t.Count = len(b.starts) - t.First
	b.txs = append(b.txs, t)
	b.txBuf = appendTx(b.txBuf, &t)
}

// inEntries returns how many events belong to the closed entries.
func (b *Builder) inEntries() int {
	if n := len(b.txs); n > 0 {
		return b.txs[n-1].First + b.txs[n-1].Count
	}
	return 0
}

// SetOrdinal sets the ordinal of the next change, for code that copies blocks
// and drops changes from them.
func (b *Builder) SetOrdinal(n uint64) { b.next, b.held = n, false }

// HoldOrdinal gives n to all changes that follow, until SetOrdinal: for
// transforms, where each output of one change keeps the ordinal of that change.
func (b *Builder) HoldOrdinal(n uint64) { b.next, b.held = n, true }

// advance goes on to the ordinal after the event that was begun.
func (b *Builder) advance() {
	if !b.held {
		b.next++
	}
}

// Finish closes the block and returns its bytes, which stay valid until Reset.
func (b *Builder) Finish() ([]byte, error) {
	if b.inTx || b.inRow {
		return nil, fmt.Errorf("%w: a transaction entry or a row is open", ErrMisuse)
	}
	if n := len(b.starts) - b.inEntries(); n != 0 {
		return nil, fmt.Errorf("%w: %d events stand outside of a transaction entry", ErrMisuse, n)
	}
	offs := len(b.buf)
	for _, s := range b.starts {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, s)
	}
	txAt := len(b.buf)
	b.buf = append(b.buf, b.txBuf...)
	schemaAt := len(b.buf)
	b.buf = append(b.buf, b.defs...)
	if len(b.buf) > b.limits.Block {
		return nil, tooLarge("block", len(b.buf), b.limits.Block)
	}
	h := b.buf[:headerSize]
	copy(h, magic[:])
	for i, v := range [...]int{len(b.buf), len(b.starts), offs, txAt, len(b.txs), schemaAt, b.nDefs} {
		binary.LittleEndian.PutUint32(h[4+4*i:], uint32(v))
	}
	clear(h[32:])
	return b.buf, nil
}

// CopyEvent appends an event of another block as it is. Its schema, if any, must
// have the same id here; it is defined when the stream does not have it.
func (b *Builder) CopyEvent(e *Event) error {
	if b.inRow || len(e.raw) == 0 {
		return fmt.Errorf("%w: a row is open, or the event was not read from a block", ErrMisuse)
	}
	if e.Schema != nil {
		if err := b.Define(e.Schema); err != nil {
			return err
		}
	}
	b.starts = append(b.starts, uint32(len(b.buf)))
	b.buf = append(b.buf, e.raw...)
	b.SetOrdinal(e.Ordinal + 1)
	return nil
}

func (b *Builder) header(k Kind, s *Schema) {
	b.event = len(b.buf)
	b.starts = append(b.starts, uint32(len(b.buf)))
	b.buf = append(b.buf, byte(k), 0)
	var id uint64
	if s != nil {
		id = uint64(s.ID)
	}
	b.buf = binary.AppendUvarint(b.buf, id)
	b.buf = binary.AppendUvarint(b.buf, b.next)
	b.advance()
}

func (b *Builder) body(k Kind, s *Schema, body []byte) error {
	if b.inRow {
		return fmt.Errorf("%w: a row is open", ErrMisuse)
	}
	if s != nil {
		if err := b.Define(s); err != nil {
			return err
		}
	}
	if len(body) > b.limits.Record {
		return tooLarge(k.String()+" event", len(body), b.limits.Record)
	}
	b.header(k, s)
	b.buf[b.event+1] = eventBody
	b.buf = appendBytes(b.buf, body)
	return nil
}

// Change appends a DDL event.
func (b *Builder) Change(c *Change) error { return b.body(DDL, nil, appendChange(nil, c)) }

// Truncate appends the event that all rows of a table are gone.
func (b *Builder) Truncate(s *Schema) error { return b.body(Truncate, s, nil) }

// KeyRange appends the end of a snapshot chunk.
func (b *Builder) KeyRange(s *Schema, r *KeyRange) error {
	return b.body(Range, s, appendRange(nil, r))
}

// StateItem appends a change of reader state.
func (b *Builder) StateItem(s *StateItem) error { return b.body(State, nil, appendState(nil, s)) }

// Heartbeat appends a sign of life at a source time in microseconds.
func (b *Builder) Heartbeat(us int64) error {
	return b.body(Heartbeat, nil, binary.AppendVarint(nil, us))
}

// Origin appends the mark that the changes of this transaction came from the
// task with that id.
func (b *Builder) Origin(id string) error { return b.body(Origin, nil, []byte(id)) }
