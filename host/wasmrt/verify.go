package wasmrt

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/datalink-go/datalink/sdk/batch"
)

// Verifier checks that the result of a transform is what a transform may make
// of its input: the same transactions at the same positions, rows of the
// schemas it was asked for with the ordinals of their inputs and keys that fit
// their values, and all else unchanged. It is not safe for concurrent use.
type Verifier struct {
	Limits batch.Limits

	expected map[uint32]*expectation
	in, out  side
	chosen   map[uint32]bool // schemas to transform, in the current block
	before   []batch.Value
	after    []batch.Value
	key      []byte
	whole    []byte
}

// expectation is the layout that was agreed on for rows of one schema.
type expectation struct {
	schema  *batch.Schema // of the input
	in, out []byte        // definitions; out is nil where rows are dropped
	drop    bool
	pass    bool
}

// side is one of the two blocks.
type side struct {
	block   batch.Block
	reg     *batch.Registry
	defined map[uint32]bool
	event   batch.Event
}

// Expect notes the layout of the output for rows of in; nil = they are dropped.
func (v *Verifier) Expect(in, out *batch.Schema) {
	if v.expected == nil {
		v.expected = map[uint32]*expectation{}
	}
	e := &expectation{schema: in, in: batch.AppendSchema(nil, in), drop: out == nil}
	if out != nil {
		e.out = batch.AppendSchema(nil, out)
	}
	old := v.expected[in.ID]
	v.expected[in.ID] = e
	if old != nil && !bytes.Equal(old.in, e.in) {
		v.in.reg = nil // the stream was opened anew
	}
	if v.in.reg == nil {
		v.in.reg, v.in.defined = batch.NewRegistry(), map[uint32]bool{}
		for _, e := range v.expected {
			_ = v.in.reg.Add(e.schema) // no id comes twice in an empty registry
		}
	}
	_ = v.in.reg.Add(in)
}

// Pass notes that rows of s pass as they are.
func (v *Verifier) Pass(s *batch.Schema) {
	v.Expect(s, s)
	v.expected[s.ID].pass = true
}

// decode reads a block; fresh forgets the layouts of earlier ones where the
// block has others.
func (s *side) decode(data []byte, limits batch.Limits, fresh bool) error {
	if s.reg == nil {
		s.reg, s.defined = batch.NewRegistry(), map[uint32]bool{}
	}
	err := s.block.Decode(data, s.reg, limits)
	if err != nil && fresh {
		s.reg = batch.NewRegistry()
		err = s.block.Decode(data, s.reg, limits)
	}
	if err != nil {
		return err
	}
	clear(s.defined)
	for _, id := range s.block.Definitions() {
		s.defined[id] = true
	}
	return nil
}

// read reads an event and checks that the block itself defines its schema.
func (s *side) read(i int) error {
	if err := s.block.Event(i, &s.event); err != nil {
		return err
	}
	if sc := s.event.Schema; sc != nil && !s.defined[sc.ID] {
		return fmt.Errorf("event %d is of schema %d, which the block does not define", i, sc.ID)
	}
	return nil
}

// Input takes the block that will be transformed and returns it with the
// definitions of all schemas that it uses; earlier blocks may have had them. The
// result stays in use until Output.
func (v *Verifier) Input(block []byte, schemas []uint32) ([]byte, error) {
	if err := v.in.decode(block, v.Limits, false); err != nil {
		return nil, err
	}
	var missing []uint32
	for i := range v.in.block.Len() {
		if err := v.in.block.Event(i, &v.in.event); err != nil {
			return nil, err
		}
		if s := v.in.event.Schema; s != nil && !v.in.defined[s.ID] {
			v.in.defined[s.ID] = true
			missing = append(missing, s.ID)
		}
	}
	if len(missing) > 0 {
		v.whole = v.whole[:0]
		v.whole = append(v.whole, block...)
		for _, id := range missing {
			v.key = batch.AppendSchema(v.key[:0], v.in.reg.Get(id))
			v.whole = binary.AppendUvarint(v.whole, uint64(len(v.key)))
			v.whole = append(v.whole, v.key...)
		}
		// The definitions are the last section of a block.
		binary.LittleEndian.PutUint32(v.whole[blockSize:], uint32(len(v.whole)))
		n := binary.LittleEndian.Uint32(v.whole[blockSchemas:])
		binary.LittleEndian.PutUint32(v.whole[blockSchemas:], n+uint32(len(missing)))
		block = v.whole
		if err := v.in.decode(block, v.Limits, false); err != nil {
			return nil, err
		}
	}
	if v.chosen == nil {
		v.chosen = map[uint32]bool{}
	}
	clear(v.chosen)
	for _, id := range schemas {
		e := v.expected[id]
		if e == nil {
			return nil, fmt.Errorf("no layout was agreed on for schema %d", id)
		}
		if s := v.in.reg.Get(id); v.in.defined[id] && s != e.schema {
			if v.key = batch.AppendSchema(v.key[:0], s); !bytes.Equal(v.key, e.in) {
				return nil, fmt.Errorf("schema %d of %s has another layout than the one that was agreed on", id, s.Name())
			}
		}
		v.chosen[id] = !e.pass
	}
	return block, nil
}

// Places in the header of a block.
const (
	blockSize    = 4
	blockSchemas = 28
)

// Output checks the result for the block given to Input.
func (v *Verifier) Output(block []byte) error {
	if err := v.out.decode(block, v.Limits, true); err != nil {
		return err
	}
	if err := v.definitions(); err != nil {
		return err
	}
	in, out := v.in.block.Txs, v.out.block.Txs
	if len(in) != len(out) {
		return fmt.Errorf("%d transaction entries, the input has %d", len(out), len(in))
	}
	for i := range in {
		if err := sameTx(&in[i], &out[i]); err != nil {
			return fmt.Errorf("transaction entry %d: %w", i, err)
		}
		if err := v.entry(&in[i], &out[i]); err != nil {
			return fmt.Errorf("transaction entry %d: %w", i, err)
		}
	}
	return nil
}

// definitions checks that each schema is what it was, or what was agreed on.
func (v *Verifier) definitions() error {
	for _, id := range v.out.block.Definitions() {
		v.key = batch.AppendSchema(v.key[:0], v.out.reg.Get(id))
		var want []byte
		switch s := v.in.reg.Get(id); {
		case v.chosen[id]:
			want = v.expected[id].out
		case s != nil && v.in.defined[id]:
			want = batch.AppendSchema(nil, s)
		}
		if want == nil {
			return fmt.Errorf("it defines schema %d, which is not in the input or was to be dropped", id)
		}
		if !bytes.Equal(v.key, want) {
			return fmt.Errorf("schema %d has another layout than the one that was agreed on", id)
		}
	}
	return nil
}

func sameTx(a, b *batch.Tx) error {
	same := a.Begins == b.Begins && a.Ends == b.Ends && a.Ordinal == b.Ordinal && a.Committed == b.Committed && a.ID == b.ID &&
		bytes.Equal(a.Start, b.Start) && bytes.Equal(a.End, b.End) && len(a.Covers) == len(b.Covers)
	for i := 0; same && i < len(a.Covers); i++ {
		same = a.Covers[i] == b.Covers[i]
	}
	if !same {
		return fmt.Errorf("positions, identity or coverage of transaction %q changed", a.ID)
	}
	return nil
}

// entry walks input and output of one transaction side by side.
func (v *Verifier) entry(in, out *batch.Tx) error {
	j, end := out.First, out.First+out.Count
	for i := in.First; i < in.First+in.Count; i++ {
		if err := v.in.read(i); err != nil {
			return fmt.Errorf("input: %w", err)
		}
		e := &v.in.event
		chosen := e.Schema != nil && v.chosen[e.Schema.ID]
		switch {
		case chosen && v.expected[e.Schema.ID].drop:
			continue // an output of its schema would be a definition too many
		case !chosen || !e.Kind.IsRow():
			if j == end {
				return fmt.Errorf("event %d, %s of ordinal %d, is missing", i, e.Kind, e.Ordinal)
			}
			if err := v.out.read(j); err != nil {
				return err
			}
			if !bytes.Equal(e.Raw(), v.out.event.Raw()) {
				return fmt.Errorf("event %d, %s of ordinal %d, which is not to be transformed, changed or moved", i, e.Kind, e.Ordinal)
			}
			j++
			continue
		}
		// Any number of rows of the same schema and ordinal.
		id, ordinal := e.Schema.ID, e.Ordinal
		for ; j < end; j++ {
			if err := v.out.read(j); err != nil {
				return err
			}
			o := &v.out.event
			if !o.Kind.IsRow() || o.Schema.ID != id || o.Ordinal != ordinal {
				break
			}
			if err := v.row(o); err != nil {
				return fmt.Errorf("event %d of the result: %w", j, err)
			}
		}
	}
	if j != end {
		if err := v.out.read(j); err != nil {
			return err
		}
		return fmt.Errorf("event %d of the result, %s of ordinal %d, has no change of the input that it can come from", j, v.out.event.Kind, v.out.event.Ordinal)
	}
	return nil
}
