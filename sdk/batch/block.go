package batch

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Block is a decoded block: a view of its bytes. Reuse one Block for many
// Decode calls to save the allocations.
type Block struct {
	Txs    []Tx
	data   []byte
	starts []byte // offset table, one uint32 an event
	end    int    // end of the event section
	n      int
	defs   []uint32
	reg    *Registry
	limits Limits
}

// Format is the version of the block's byte layout.
const Format = 1

const headerSize = 40

var magic = [4]byte{'D', 'L', 'B', Format}

// Decode reads the envelope of the block in data: header, schemas (which go to
// reg) and transaction table. Events are read on demand. The block refers to
// data. Errors wrap ErrCorrupt or ErrTooLarge.
func (b *Block) Decode(data []byte, reg *Registry, limits Limits) error {
	limits = limits.withDefaults()
	if len(data) > limits.Block {
		return tooLarge("block", len(data), limits.Block)
	}
	if len(data) < headerSize {
		return fmt.Errorf("%w: %d bytes, a header has %d", ErrCorrupt, len(data), headerSize)
	}
	if [4]byte(data[:4]) != magic {
		return fmt.Errorf("%w: it begins with % x, want % x (block format version %d)", ErrCorrupt, data[:4], magic, Format)
	}
	u32 := func(at int) int { return int(binary.LittleEndian.Uint32(data[at:])) }
	total, n, offs, txAt, txs, schemaAt, schemas := u32(4), u32(8), u32(12), u32(16), u32(20), u32(24), u32(28)
	if total != len(data) {
		return fmt.Errorf("%w: the header says %d bytes, there are %d", ErrCorrupt, total, len(data))
	}
	if binary.LittleEndian.Uint64(data[32:]) != 0 {
		return fmt.Errorf("%w: reserved header bytes are not zero", ErrCorrupt)
	}
	if offs < headerSize || txAt < offs || schemaAt < txAt || total < schemaAt || (txAt-offs)/4 < n || txAt-offs != 4*n {
		return fmt.Errorf("%w: sections at %d, %d, %d of %d with %d events overlap or are cut", ErrCorrupt, offs, txAt, schemaAt, total, n)
	}
	b.data, b.n, b.end, b.reg, b.limits = data, n, offs, reg, limits
	b.starts = data[offs:txAt]
	if err := b.decodeSchemas(data[schemaAt:], schemas); err != nil {
		return err
	}
	if err := b.decodeTxs(data[txAt:schemaAt], txs); err != nil {
		return err
	}
	prev := headerSize
	for i := range n {
		s := b.start(i)
		if i == 0 && s != headerSize || s < prev || s >= offs {
			return fmt.Errorf("%w: event %d of %d starts at byte %d, after %d, section ends at %d", ErrCorrupt, i, n, s, prev, offs)
		}
		prev = s
	}
	if n == 0 && offs != headerSize {
		return fmt.Errorf("%w: no events, but %d bytes of them", ErrCorrupt, offs-headerSize)
	}
	return nil
}

func (b *Block) decodeSchemas(data []byte, n int) error {
	mem := b.limits.Block
	c := newCursor("schema section", data, mem)
	b.defs = b.defs[:0]
	c.reserve("count", uint64(n), 1, unsafe.Sizeof(b.defs[0]))
	if c.err != nil {
		return c.err
	}
	for range n {
		def := c.bytes("definition")
		if c.err != nil {
			return c.err
		}
		id, err := b.reg.define(def, &mem)
		if err != nil {
			return err
		}
		b.defs = append(b.defs, id)
	}
	c.end()
	return c.err
}

func (b *Block) decodeTxs(data []byte, n int) error {
	c := newCursor("transaction table", data, b.limits.Block)
	c.reserve("count", uint64(n), 7, unsafe.Sizeof(Tx{}))
	if c.err != nil {
		return c.err
	}
	b.Txs = grow(b.Txs, n)
	next := 0
	for i := range b.Txs {
		t := &b.Txs[i]
		c.tx(t)
		if c.err == nil && (t.First != next || t.Count > b.n-next) {
			c.fail("events", fmt.Sprintf("entry %d has %d from %d, expected from %d of %d", i, t.Count, t.First, next, b.n))
		}
		if c.err != nil {
			return c.err
		}
		next += t.Count
	}
	if next != b.n {
		c.fail("events", fmt.Sprintf("%d of %d belong to a transaction", next, b.n))
	}
	c.end()
	return c.err
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		s = append(s[:cap(s)], make([]T, n-cap(s))...)
	}
	return s[:n]
}

func (b *Block) start(i int) int { return int(binary.LittleEndian.Uint32(b.starts[4*i:])) }

// Len returns the number of events.
func (b *Block) Len() int { return b.n }

// Bytes returns the block's bytes.
func (b *Block) Bytes() []byte { return b.data }

// Definitions returns the ids of the schemas defined in this block.
func (b *Block) Definitions() []uint32 { return b.defs }

// Registry returns the registry that the block was decoded with.
func (b *Block) Registry() *Registry { return b.reg }

// Event is one event of a block, without its values.
type Event struct {
	Kind    Kind
	Schema  *Schema // nil where the kind needs none
	Ordinal uint64  // changes before it in its source transaction
	Before  Image
	After   Image
	Key     []byte // key bytes: of the after image, of the before image for Delete; empty = keyless
	OldKey  []byte // key bytes of the before image where the key changed
	body    []byte
	raw     []byte
}

// Size returns the encoded size in bytes.
func (e *Event) Size() int { return len(e.raw) }

// Raw returns the encoded event, a view; see Builder.CopyEvent.
func (e *Event) Raw() []byte { return e.raw }

// Body returns the bytes of an event that is not a row.
func (e *Event) Body() []byte { return e.body }

// Change decodes the body of a DDL event.
func (e *Event) Change() (*Change, error) { return decodeChange(e.body) }

// KeyRange decodes the body of a Range event; the result refers to the block.
func (e *Event) KeyRange() (*KeyRange, error) { return decodeRange(e.body) }

// StateItem decodes the body of a State event; its value refers to the block.
func (e *Event) StateItem() (*StateItem, error) { return decodeState(e.body) }

const (
	eventBefore = 1
	eventAfter  = 2
	eventKey    = 4
	eventOldKey = 8
	eventBody   = 16
)

// Event reads the i-th event's envelope into e. Errors wrap ErrCorrupt,
// ErrUnknownSchema or ErrTooLarge.
func (b *Block) Event(i int, e *Event) error {
	end := b.end
	if i+1 < b.n {
		end = b.start(i + 1)
	}
	raw := b.data[b.start(i):end]
	if len(raw) > b.limits.Record {
		return tooLarge(fmt.Sprintf("event %d", i), len(raw), b.limits.Record)
	}
	if err := decodeEvent(raw, b.reg, e); err != nil {
		return fmt.Errorf("event %d: %w", i, err)
	}
	return nil
}

func decodeEvent(raw []byte, reg *Registry, e *Event) error {
	if len(raw) < 4 {
		return fmt.Errorf("%w: event of %d bytes", ErrCorrupt, len(raw))
	}
	*e = Event{Kind: Kind(raw[0]), raw: raw}
	flags := raw[1]
	if !e.Kind.Valid() {
		return fmt.Errorf("%w: unknown kind %d", ErrCorrupt, raw[0])
	}
	pos := 2
	id, k := binary.Uvarint(raw[pos:])
	if k <= 0 {
		return fmt.Errorf("%w: schema id cut off", ErrCorrupt)
	}
	pos += k
	e.Ordinal, k = binary.Uvarint(raw[pos:])
	if k <= 0 {
		return fmt.Errorf("%w: ordinal cut off", ErrCorrupt)
	}
	pos += k
	if id != 0 {
		if id > 0xFFFFFFFF {
			return fmt.Errorf("%w: schema id %d", ErrCorrupt, id)
		}
		if e.Schema = reg.Get(uint32(id)); e.Schema == nil {
			return fmt.Errorf("%w %d of a %s event", ErrUnknownSchema, id, e.Kind)
		}
	}
	if (id != 0) != e.Kind.needsSchema() {
		return fmt.Errorf("%w: %s event with schema %d", ErrCorrupt, e.Kind, id)
	}
	if e.Kind.IsRow() {
		keyed := len(e.Schema.Key) > 0
		if !hasImages(e.Kind, flags) || flags&eventBody != 0 || keyed != (flags&eventKey != 0) || flags&eventOldKey != 0 && e.Kind != Update {
			return fmt.Errorf("%w: %s event of %s with flags %#x and a key of %d columns", ErrCorrupt, e.Kind, e.Schema.Name(), flags, len(e.Schema.Key))
		}
	} else if flags != eventBody {
		return fmt.Errorf("%w: %s event with flags %#x", ErrCorrupt, e.Kind, flags)
	}
	if flags&^(eventBefore|eventAfter|eventKey|eventOldKey|eventBody) != 0 || flags&eventOldKey != 0 && flags&eventKey == 0 {
		return fmt.Errorf("%w: event flags %#x", ErrCorrupt, flags)
	}
	for _, f := range [...]struct {
		bit byte
		im  *Image
	}{{eventBefore, &e.Before}, {eventAfter, &e.After}} {
		if flags&f.bit == 0 {
			continue
		}
		if len(raw)-pos < 4 {
			return fmt.Errorf("%w: image cut off", ErrCorrupt)
		}
		n := int(binary.LittleEndian.Uint32(raw[pos:]))
		pos += 4
		if n < 1 || n > len(raw)-pos {
			return fmt.Errorf("%w: image of %d bytes, %d left", ErrCorrupt, n, len(raw)-pos)
		}
		*f.im = Image{schema: e.Schema, data: raw[pos : pos+n : pos+n]}
		pos += n
	}
	for _, f := range [...]struct {
		bit byte
		dst *[]byte
	}{{eventKey, &e.Key}, {eventOldKey, &e.OldKey}, {eventBody, &e.body}} {
		if flags&f.bit == 0 {
			continue
		}
		n, k := binary.Uvarint(raw[pos:])
		if k <= 0 || n > uint64(len(raw)-pos-k) {
			return fmt.Errorf("%w: key or body cut off", ErrCorrupt)
		}
		pos += k
		*f.dst = raw[pos : pos+int(n) : pos+int(n)]
		pos += int(n)
	}
	if pos != len(raw) {
		return fmt.Errorf("%w: %d bytes after the event", ErrCorrupt, len(raw)-pos)
	}
	return nil
}

// Kind returns the kind of the i-th event without reading the rest of it.
func (b *Block) Kind(i int) Kind { return Kind(b.data[b.start(i)]) }
