package wire

import "github.com/datalink-go/datalink/sdk"

// Append implements Message.
func (m *Position) Append(dst []byte) []byte { return position(dst, m.Position) }

// Decode implements Message.
func (m *Position) Decode(data []byte) error {
	*m = Position{}
	r := read("Position", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Format = r.string()
		case 2:
			m.Version = r.uint32()
		case 3:
			m.Source = r.bytes()
		case 4:
			m.Ordinal = r.uint64()
		}
	}
	return r.err
}

func (r *reader) position() sdk.Position {
	var p Position
	r.message(&p)
	return p.Position
}

// Append implements Message.
func (m *PositionText) Append(dst []byte) []byte { return appendString(dst, 1, m.Text) }

// Decode implements Message.
func (m *PositionText) Decode(data []byte) error {
	*m = PositionText{}
	return decodeString("PositionText", data, &m.Text)
}

// Append implements Message.
func (m *PositionPair) Append(dst []byte) []byte {
	dst = appendPosition(dst, 1, m.A)
	return appendPosition(dst, 2, m.B)
}

// Decode implements Message.
func (m *PositionPair) Decode(data []byte) error {
	*m = PositionPair{}
	r := read("PositionPair", data)
	for r.next() {
		switch r.num {
		case 1:
			m.A = r.position()
		case 2:
			m.B = r.position()
		}
	}
	return r.err
}

// Append implements Message.
func (m *OrderReply) Append(dst []byte) []byte { return appendUint(dst, 1, uint64(m.Order)) }

// Decode implements Message.
func (m *OrderReply) Decode(data []byte) error {
	*m = OrderReply{}
	r := read("OrderReply", data)
	for r.next() {
		if r.num == 1 {
			v := r.uint32()
			if v > uint32(sdk.After) {
				r.fail("order %d, want 0 to %d", v, sdk.After)
			}
			m.Order = sdk.Order(v)
		}
	}
	return r.err
}
