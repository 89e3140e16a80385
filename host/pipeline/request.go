package pipeline

import (
	"bytes"
	"fmt"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// sent is one request that a writer has not acknowledged.
type sent struct {
	seq     uint64
	entry   *entry
	from    int // events [from,to) of the mapped block
	to      int
	whole   bool // it ends its entry
	counts  []Count
	last    *batch.Schema // of the row counted last, and its place in counts
	at      int
	state   []batch.StateItem // for writers that do not store it
	aside   []sdk.DeadLetter
	records int
	covered int // rows left out because the writer has all of their transaction
	bytes   int // of the block as it was sent
}

// spot is one event of an entry, counted in the block after the writer's stages.
type spot struct {
	entry int64
	event int
}

func (s spot) after(t spot) bool {
	return s.entry > t.entry || s.entry == t.entry && s.event > t.event
}

// builder makes the requests of one writer. It is used by that writer's
// goroutine alone.
type builder struct {
	cfg     *WriterConfig
	noGuard bool
	noSkip  bool

	chain  *chain
	out    *batch.Builder
	blk    batch.Block
	mapped int64 // entry whose mapped block lies in blk, -1 = none
	fresh  bool  // the stream is new: its first block defines all schemas

	offset int     // of the writer's points in the list given to the reader
	points int     // how many
	skip   []place // by point: what the target holds since it was claimed again; nil = as the reader marked it
	behind []int64 // lanes of those points that hold nothing of the window that is not acknowledged

	failed map[spot]sdk.Fault // records that cannot be written
	guard  map[string]spot    // guarded keys, and the record that guards them
	held   map[string]uint64  // dead letters the target holds, by identity
	number map[spot]uint64    // numbers given to dead letters
	next   uint64
}

func newBuilder(cfg *WriterConfig, noGuard, noSkip bool) *builder {
	return &builder{
		cfg: cfg, noGuard: noGuard, noSkip: noSkip, chain: newChain("mappings", cfg.Stages), mapped: -1, fresh: true,
		out:    batch.NewBuilder(batch.Limits{}),
		failed: map[spot]sdk.Fault{}, guard: map[string]spot{}, held: map[string]uint64{}, number: map[spot]uint64{}, next: 1,
	}
}

// claimed takes over the dead letters that the target holds.
func (b *builder) claimed(c *sdk.Claimed) {
	for _, d := range c.DeadLetters {
		b.next = max(b.next, d.Number+1)
		b.held[identity(&d)] = d.Number
		if k := guardKey(d.Table, d.Key); len(d.Key) > 0 {
			if _, ok := b.guard[k]; !ok {
				b.guard[k] = spot{entry: -1}
			}
		}
	}
}

func guardKey(table string, key []byte) string { return table + "\x00" + string(key) }

func identity(d *sdk.DeadLetter) string {
	return fmt.Sprintf("%s\x00%s\x00%s\x00%d", d.Table, d.Key, d.Position.Source, d.Position.Ordinal)
}

// restart begins a new stream: the receiver knows no schema.
func (b *builder) restart() { b.fresh, b.mapped = true, -1 }

// open maps the entry and leaves the result in blk.
func (b *builder) open(m *mapping, e *entry) error {
	if b.mapped == e.index {
		return nil
	}
	data, err := m.get(e)
	if err != nil {
		return err
	}
	if err := b.blk.Decode(data, b.chain.last(), batch.Limits{}); err != nil {
		return fmt.Errorf("writer %s, block from %s: %w", b.cfg.Name, describePosition(e.first), err)
	}
	b.mapped = e.index
	m.count(e, &b.blk)
	return nil
}

// build makes the request for events [from,to) of the mapped block in blk and
// notes what it holds.
func (b *builder) build(e *entry, from, to int, split bool) (*wire.WriteRequest, *sent, error) {
	n := b.blk.Len()
	s := &sent{entry: e, from: from, to: to, whole: to >= n}
	req := &wire.WriteRequest{First: e.first, Last: e.last, VersionBase: e.version + uint64(from), Split: split}
	plain, err := b.survey(e, s)
	if err != nil {
		return nil, nil, err
	}
	if plain && from == 0 && to == n && !b.fresh {
		req.Block = b.blk.Bytes()
		return req, s, nil
	}
	if err := b.rebuild(e, s); err != nil {
		return nil, nil, fmt.Errorf("writer %s: %w", b.cfg.Name, err)
	}
	data, err := b.out.Finish()
	if err != nil {
		return nil, nil, fmt.Errorf("writer %s: %w", b.cfg.Name, err)
	}
	req.Block = bytes.Clone(data)
	req.SetAside = s.aside
	return req, s, nil
}

// survey counts what the request holds and reports whether the block can go as
// it is.
func (b *builder) survey(e *entry, s *sent) (plain bool, err error) {
	plain = b.skip == nil
	for i := range b.blk.Txs {
		plain = plain && len(b.blk.Txs[i].Covers) == 0
	}
	watch := len(b.failed) > 0 || len(b.guard) > 0
	var ev batch.Event
	for i := s.from; i < s.to; i++ {
		k := b.blk.Kind(i)
		if !k.IsRow() && k != batch.State {
			continue
		}
		if err := b.blk.Event(i, &ev); err != nil {
			return false, fmt.Errorf("block from %s: %w", describePosition(e.first), err)
		}
		if k == batch.State {
			if !b.cfg.Stores {
				item, err := ev.StateItem()
				if err != nil {
					return false, err
				}
				c := *item
				c.Value = bytes.Clone(item.Value)
				s.state = append(s.state, c)
			}
			continue
		}
		s.count(&ev)
		if watch && plain {
			_, failed := b.failed[spot{e.index, i}]
			plain = !failed && !b.guarded(&ev, spot{e.index, i})
		}
	}
	return plain, nil
}

func (s *sent) count(ev *batch.Event) {
	s.records++
	if ev.Schema != s.last {
		s.last, s.at = ev.Schema, s.countOf(ev.Schema.Name())
	}
	c := &s.counts[s.at]
	switch ev.Kind {
	case batch.Insert, batch.Read:
		c.Inserted++
	case batch.Update:
		c.Updated++
	case batch.Delete:
		c.Deleted++
	}
}

// countOf returns the place of a table in counts.
func (s *sent) countOf(table string) int {
	for i := range s.counts {
		if s.counts[i].Table == table {
			return i
		}
	}
	s.counts = append(s.counts, Count{Table: table})
	return len(s.counts) - 1
}

func (b *builder) guarded(ev *batch.Event, at spot) bool {
	if b.noGuard || len(ev.Key) == 0 {
		return false
	}
	name := ev.Schema.Name()
	for _, key := range [][]byte{ev.Key, ev.OldKey} {
		if len(key) == 0 {
			continue
		}
		if by, ok := b.guard[guardKey(name, key)]; ok && at.after(by) {
			return true
		}
	}
	return false
}

// rebuild copies the events of the request into out: with all schemas where the
// stream is new, with the covers of this writer, without what is covered
// entirely or set aside.
func (b *builder) rebuild(e *entry, s *sent) error {
	b.out.Reset()
	b.out.Forget()
	if b.fresh {
		for _, sc := range b.chain.last().All() {
			if err := b.out.Define(sc); err != nil {
				return err
			}
		}
	}
	for _, id := range b.blk.Definitions() {
		if err := b.out.Define(b.chain.last().Get(id)); err != nil {
			return err
		}
	}
	s.counts, s.last, s.records, s.covered = nil, nil, 0, 0
	for t := range b.blk.Txs {
		if err := b.rebuildTx(e, s, t); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) rebuildTx(e *entry, s *sent, t int) error {
	tx := b.blk.Txs[t] // a copy
	lo, hi := max(tx.First, s.from), min(tx.First+tx.Count, s.to)
	if tx.First+tx.Count < s.from || tx.First > s.to || lo >= hi && (tx.Count > 0 || tx.First < s.from || tx.First == s.to && s.to < b.blk.Len()) {
		return nil // no part of it belongs to this request
	}
	start := startOf(&entry{block: b.blk, first: e.first}, t)
	if lo > tx.First {
		var ev batch.Event
		if err := b.blk.Event(lo, &ev); err != nil {
			return err
		}
		tx.Begins, tx.Ordinal = false, ev.Ordinal
	}
	if hi < tx.First+tx.Count {
		if len(start) == 0 {
			return fmt.Errorf("the block from %s cannot be split: the source gave no position before transaction %s", describePosition(e.first), tx.ID)
		}
		tx.Ends, tx.End = false, nil
	}
	if !tx.Ends || lo > tx.First {
		tx.Start = start
	}
	tx.Covers = b.covers(e, t)
	whole := len(tx.Covers) == b.points && b.points > 0
	for _, c := range tx.Covers {
		whole = whole && c.Upto == 0
	}
	for i := lo; i < hi; i++ {
		if whole {
			if b.blk.Kind(i).IsRow() {
				s.covered++
			}
			continue
		}
		if err := b.copy(e, s, i, start); err != nil {
			return err
		}
	}
	b.out.AppendTx(tx)
	return nil
}

// covers returns the covers of a transaction in the writer's own points.
func (b *builder) covers(e *entry, t int) []batch.Cover {
	var out []batch.Cover
	if b.noSkip {
		return nil
	}
	if b.skip == nil {
		for _, c := range b.blk.Txs[t].Covers {
			if p := c.Point - b.offset; p >= 0 && p < b.points {
				out = append(out, batch.Cover{Point: p, Upto: c.Upto})
			}
		}
		return out
	}
	for p, at := range b.skip {
		switch {
		case e.index < at.entry || e.index == at.entry && t < at.tx:
			out = append(out, batch.Cover{Point: p})
		case e.index == at.entry && t == at.tx && at.ordinal > 0:
			out = append(out, batch.Cover{Point: p, Upto: at.ordinal})
		}
	}
	return out
}

// copy appends the i-th event, or a heartbeat in its place where the record is
// set aside, so that the places of the others stay as they are.
func (b *builder) copy(e *entry, s *sent, i int, start []byte) error {
	var ev batch.Event
	if err := b.blk.Event(i, &ev); err != nil {
		return err
	}
	if !ev.Kind.IsRow() {
		return b.out.CopyEvent(&ev)
	}
	at := spot{e.index, i}
	fault, failed := b.failed[at]
	if !failed && b.guarded(&ev, at) {
		failed = true
		fault = sdk.Fault{Code: sdk.CodeRefused, Message: "its key has an earlier dead letter, which it follows"}
	}
	if !failed {
		s.count(&ev)
		return b.out.CopyEvent(&ev)
	}
	d, err := b.letter(e, &ev, at, start, fault)
	if err != nil {
		return err
	}
	if d != nil {
		s.aside = append(s.aside, *d)
	}
	b.out.SetOrdinal(ev.Ordinal)
	return b.out.Heartbeat(0)
}

// letter makes the dead letter of an event, nil where the target holds it
// already, and guards its keys from there on.
func (b *builder) letter(e *entry, ev *batch.Event, at spot, start []byte, fault sdk.Fault) (*sdk.DeadLetter, error) {
	name := ev.Schema.Name()
	for _, key := range [][]byte{ev.Key, ev.OldKey} {
		if k := guardKey(name, key); len(key) > 0 {
			if _, ok := b.guard[k]; !ok {
				b.guard[k] = at
			}
		}
	}
	one := batch.NewBuilder(batch.Limits{Full: len(ev.Raw()) + 1024})
	if err := one.CopyEvent(ev); err != nil {
		return nil, err
	}
	one.AppendTx(batch.Tx{Begins: true, Ends: true, Ordinal: ev.Ordinal})
	record, err := one.Finish()
	if err != nil {
		return nil, err
	}
	key := ev.Key
	if len(ev.OldKey) > 0 {
		key = ev.OldKey
	}
	d := &sdk.DeadLetter{
		Table: name, Key: bytes.Clone(key), Record: record, Fault: fault, At: time.Now(),
		Position: sdk.Position{Format: e.last.Format, Version: e.last.Version, Source: bytes.Clone(start), Ordinal: ev.Ordinal},
	}
	if _, ok := b.held[identity(d)]; ok {
		return nil, nil
	}
	n, ok := b.number[at]
	if !ok {
		n = b.next
		b.next++
		b.number[at] = n
	}
	d.Number = n
	return d, nil
}

// forget drops notes about entries before index: they are durable.
func (b *builder) forget(index int64) {
	for at := range b.failed {
		if at.entry < index {
			delete(b.failed, at)
		}
	}
	for at := range b.number {
		if at.entry < index {
			delete(b.number, at)
		}
	}
}

// mapping runs entries through the writer's stages, in order, and keeps the
// results of those that may be sent again.
type mapping struct {
	writer string
	run    func(data []byte) ([]byte, error)
	same   bool // there are no stages
	base   int64
	done   [][]byte

	filtered func(records int)
	counted  int64 // entries before it are
}

func (m *mapping) get(e *entry) ([]byte, error) {
	own := e.beside[m.writer]
	if m.same {
		if own != nil {
			return own, nil
		}
		return e.data, nil
	}
	if e.index == m.base+int64(len(m.done)) {
		out, err := own, error(nil)
		if own == nil {
			out, err = m.run(e.data)
		}
		if err != nil {
			return nil, err
		}
		m.done = append(m.done, out)
	}
	return m.done[e.index-m.base], nil
}

// count tells how many rows of the entry the stages left out, once.
func (m *mapping) count(e *entry, out *batch.Block) {
	if m.same || m.filtered == nil || e.index < m.counted {
		return
	}
	m.counted = e.index + 1
	if dropped := e.rows - rows(out); dropped > 0 {
		m.filtered(dropped)
	}
}

func (m *mapping) forget(index int64) {
	if m.same || index <= m.base {
		return
	}
	clear(m.done[:index-m.base])
	m.done = m.done[index-m.base:]
	m.base = index
}
