package rowbench

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/datalink-go/datalink/sdk/batch"
)

// packed sends rows as one block.
type packed struct {
	schema  *batch.Schema
	builder *batch.Builder
	block   batch.Block
	reg     *batch.Registry
	values  []batch.Value
}

func newPacked() *packed {
	p := &packed{schema: schema(), builder: batch.NewBuilder(batch.Limits{}), reg: batch.NewRegistry()}
	return p
}

func (p *packed) encode(rows [][]cell) ([]byte, error) {
	b := p.builder
	b.Reset()
	if err := b.BeginTx(batch.Tx{Begins: true}); err != nil {
		return nil, err
	}
	for _, row := range rows {
		if err := p.row(b, row); err != nil {
			return nil, err
		}
	}
	if err := b.EndTx(true, nil, nil); err != nil {
		return nil, err
	}
	return b.Finish()
}

func (p *packed) row(b *batch.Builder, row []cell) error {
	if err := b.BeginRow(batch.Insert, p.schema); err != nil {
		return err
	}
	b.BeginImage(batch.AfterImage)
	for i := range row {
		c := &row[i]
		switch {
		case c.null:
			b.PutNull()
		case columns[i].typ == batch.Float64:
			b.PutFloat(c.f)
		case c.bytes != nil:
			b.PutBytes(c.bytes)
		default:
			b.PutInt(c.i)
		}
	}
	b.EndImage()
	return b.EndRow()
}

func (p *packed) decode(data []byte, sum *checksum) error {
	if err := p.block.Decode(data, p.reg, batch.Limits{}); err != nil {
		return err
	}
	var e batch.Event
	var err error
	for i := range p.block.Len() {
		if err = p.block.Event(i, &e); err != nil {
			return err
		}
		if p.values, err = e.After.Values(p.values); err != nil {
			return err
		}
		for j := range p.values {
			v := &p.values[j]
			switch {
			case v.State == batch.Null:
				sum.number(0)
			case columns[j].typ.Width() == 0:
				sum.bytes(v.Bytes())
			default:
				sum.number(v.Uint64())
			}
		}
	}
	return nil
}

// messages sends each row as one message, with its length before it.
type messages struct {
	buf     []byte
	out, in Row
	cells   []kinds
}

// kinds are the oneof wrappers of one value, kept for reuse.
type kinds struct {
	null  Value_Null
	int   Value_Int
	uint  Value_Uint
	float Value_Float
	text  Value_Text
	bytes Value_Bytes
}

func newMessages() *messages {
	m := &messages{cells: make([]kinds, len(columns))}
	for range columns {
		m.out.After = append(m.out.After, &Value{})
	}
	return m
}

func (m *messages) encode(rows [][]cell) ([]byte, error) {
	m.buf = m.buf[:0]
	for n, row := range rows {
		m.fill(uint64(n), row)
		at := len(m.buf)
		var err error
		if m.buf, err = (proto.MarshalOptions{}).MarshalAppend(append(m.buf, 0, 0, 0, 0), &m.out); err != nil {
			return nil, err
		}
		binary.LittleEndian.PutUint32(m.buf[at:], uint32(len(m.buf)-at-4))
	}
	return m.buf, nil
}

// fill sets the outgoing message.
func (m *messages) fill(ordinal uint64, row []cell) {
	m.out.Kind, m.out.Schema, m.out.Ordinal = 1, 1, ordinal
	for i := range row {
		c, v, k := &row[i], m.out.After[i], &m.cells[i]
		switch typ := columns[i].typ; {
		case c.null:
			k.null.Null = true
			v.Kind = &k.null
		case typ == batch.Float64:
			k.float.Float = c.f
			v.Kind = &k.float
		case typ == batch.Bytes:
			k.bytes.Bytes = c.bytes
			v.Kind = &k.bytes
		case c.bytes != nil:
			k.text.Text = c.text
			v.Kind = &k.text
		case typ == batch.Uint8 || typ == batch.Uint32:
			k.uint.Uint = uint64(c.i)
			v.Kind = &k.uint
		default:
			k.int.Int = c.i
			v.Kind = &k.int
		}
	}
}

func (m *messages) decode(data []byte, sum *checksum) error {
	for len(data) > 0 {
		n := int(binary.LittleEndian.Uint32(data))
		if err := proto.Unmarshal(data[4:4+n], &m.in); err != nil {
			return err
		}
		data = data[4+n:]
		if err := readMessage(&m.in, sum); err != nil {
			return err
		}
	}
	return nil
}

func readMessage(m *Row, sum *checksum) error {
	for _, v := range m.After {
		switch k := v.Kind.(type) {
		case *Value_Null:
			sum.number(0)
		case *Value_Int:
			sum.number(uint64(k.Int))
		case *Value_Uint:
			sum.number(k.Uint)
		case *Value_Float:
			sum.number(math.Float64bits(k.Float))
		case *Value_Text:
			sum.text(k.Text)
		case *Value_Bytes:
			sum.bytes(k.Bytes)
		default:
			return fmt.Errorf("value %T", k)
		}
	}
	return nil
}
