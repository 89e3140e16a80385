package rpc

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrCorrupt says that bytes are not what the protocol says.
var ErrCorrupt = errors.New("corrupt message")

func corrupt(what string) error { return fmt.Errorf("%w: %s", ErrCorrupt, what) }

// message is a protobuf message that is being written.
type message []byte

func (m message) varint(field protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m message) bool(field protowire.Number, v bool) message {
	return m.varint(field, protowire.EncodeBool(v))
}

func (m message) bytes(field protowire.Number, v []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), v)
}

func (m message) string(field protowire.Number, v string) message {
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), v)
}

// fields calls f for each field of a message; v holds numbers, b everything that
// has a length.
func fields(data []byte, f func(field protowire.Number, v uint64, b []byte) error) error {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return corrupt("field tag")
		}
		data = data[n:]
		var v uint64
		var b []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(data)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(data)
		case protowire.Fixed32Type:
			var v32 uint32
			v32, n = protowire.ConsumeFixed32(data)
			v = uint64(v32)
		default:
			n = protowire.ConsumeFieldValue(num, typ, data)
		}
		if n < 0 {
			return corrupt(fmt.Sprintf("field %d", num))
		}
		data = data[n:]
		if err := f(num, v, b); err != nil {
			return err
		}
	}
	return nil
}

// delimited splits a message that its length precedes from what follows.
func delimited(data []byte) (msg, rest []byte, err error) {
	msg, n := protowire.ConsumeBytes(data)
	if n < 0 {
		return nil, nil, corrupt("length of a message")
	}
	return msg, data[n:], nil
}

// pair is a NameBytesPair or BytesBytesPair.
type pair struct{ first, second []byte }

func (p *pair) parse(data []byte) error {
	return fields(data, func(f protowire.Number, _ uint64, b []byte) error {
		switch f {
		case 1:
			p.first = b
		case 2:
			p.second = b
		}
		return nil
	})
}

func appendPair(first, second []byte) message { return message(nil).bytes(1, first).bytes(2, second) }
