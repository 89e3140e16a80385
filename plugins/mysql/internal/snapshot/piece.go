package snapshot

import (
	"bytes"

	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/sdk/batch"
)

// piece is rows that are handed over as one transaction, or, of a table without a
// key, as a part of one.
type piece struct {
	window *window
	schema *batch.Schema
	out    *batch.Builder
	block  batch.Block
	lo, hi *mark // hi: the last row; nil = the end of the table
	first  bool  // of a table without a key: its rows go before
	end    bool  // its span was read to its end
	rows   int
	bytes  int

	// While it is handed over.
	began   bool
	next    int // event
	start   []byte
	ordinal uint64
	keys    [][]byte
}

// shape makes pieces of one window.
type shape struct {
	window  *window
	sel     *rows.Selection
	ordinal uint64 // of the next row in its transaction
	out     *batch.Builder
	weaver  *Weaver
}

// add appends a row.
func (b *shape) add(packet []byte) error {
	if b.out == nil {
		b.out = b.weaver.builder()
		if err := b.out.BeginTx(batch.Tx{Begins: true, Ordinal: b.ordinal}); err != nil {
			return err
		}
	}
	return b.sel.Append(b.out, packet)
}

func (b *shape) size() int {
	if b.out == nil {
		return 0
	}
	return b.out.Size()
}

func (b *shape) rows() int {
	if b.out == nil {
		return 0
	}
	return b.out.Len()
}

// builder returns an empty builder, one of those that were used if there is one.
func (w *Weaver) builder() *batch.Builder {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.spare); n > 0 {
		b := w.spare[n-1]
		w.spare = w.spare[:n-1]
		b.Reset()
		b.Forget()
		return b
	}
	return batch.NewBuilder(batch.Limits{Block: 1 << 30, Full: w.cfg.Piece, Events: 1 << 20})
}

// keep takes a builder back, unless it holds much more than a piece needs.
func (w *Weaver) keep(p *piece) {
	if p.out != nil && p.bytes < 2*w.cfg.Piece && len(w.spare) < w.cfg.Parallel+2 {
		w.spare = append(w.spare, p.out)
	}
	p.out = nil
}

// here is the place after the row that was added last.
func (b *shape) here() *mark {
	key, _ := b.out.LastKeys()
	return &mark{Cursor: b.sel.Cursor(), Key: bytes.Clone(key)}
}

// take returns what was added as a piece, which may be empty.
func (b *shape) take() (*piece, error) {
	p := &piece{window: b.window, schema: b.sel.Schema, rows: b.rows()}
	if b.out == nil {
		return p, nil
	}
	_, b.ordinal = b.out.OpenTx()
	if err := b.out.EndTx(true, nil, nil); err != nil {
		return nil, err
	}
	data, err := b.out.Finish()
	if err != nil {
		return nil, err
	}
	if err := p.block.Decode(data, batch.NewRegistry(), b.out.Limits()); err != nil {
		return nil, err
	}
	p.schema = p.block.Registry().Get(b.sel.Schema.ID)
	p.out, p.bytes, b.out = b.out, len(data), nil
	return p, nil
}
