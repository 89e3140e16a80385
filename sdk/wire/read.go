package wire

// Append implements Message.
func (m *OpenRequest) Append(dst []byte) []byte {
	dst = appendExecution(dst, 1, m.Execution)
	dst = appendPoints(dst, 2, m.Points)
	return appendState(dst, 3, m.State)
}

// Decode implements Message.
func (m *OpenRequest) Decode(data []byte) error {
	*m = OpenRequest{}
	r := read("OpenRequest", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Execution = r.execution()
		case 2:
			m.Points = r.points(m.Points)
		case 3:
			m.State = r.state(m.State)
		}
	}
	return r.err
}

// Append implements Message.
func (m *ReadRequest) Append(dst []byte) []byte {
	dst = appendUint(dst, 1, m.Records)
	dst = appendUint(dst, 2, m.Bytes)
	return appendUint(dst, 3, m.Taken)
}

// Decode implements Message.
func (m *ReadRequest) Decode(data []byte) error {
	*m = ReadRequest{}
	r := read("ReadRequest", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Records = r.uint64()
		case 2:
			m.Bytes = r.uint64()
		case 3:
			m.Taken = r.uint64()
		}
	}
	return r.err
}

// Append implements Message.
func (m *NextRequest) Append(dst []byte) []byte { return appendUint(dst, 1, m.WaitMicros) }

// Decode implements Message.
func (m *NextRequest) Decode(data []byte) error {
	*m = NextRequest{}
	r := read("NextRequest", data)
	for r.next() {
		if r.num == 1 {
			m.WaitMicros = r.uint64()
		}
	}
	return r.err
}

// Append implements Message.
func (m *ReadReply) Append(dst []byte) []byte {
	dst = appendBytes(dst, 1, m.Block)
	dst = appendPosition(dst, 2, m.First)
	dst = appendPosition(dst, 3, m.Last)
	dst = appendBool(dst, 4, m.End)
	return appendFault(dst, 5, m.Fault)
}

// Decode implements Message.
func (m *ReadReply) Decode(data []byte) error {
	*m = ReadReply{}
	r := read("ReadReply", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Block = r.bytes()
		case 2:
			m.First = r.position()
		case 3:
			m.Last = r.position()
		case 4:
			m.End = r.bool()
		case 5:
			m.Fault = r.fault()
		}
	}
	return r.err
}

// Append implements Message.
func (m *RangeRequest) Append(dst []byte) []byte {
	dst = appendBytes(dst, 1, m.Schema)
	dst = appendBytes(dst, 2, m.Lo)
	dst = appendBytes(dst, 3, m.Hi)
	dst = appendUint(dst, 4, m.Rows)
	for _, k := range m.Keys {
		dst = appendItem(dst, 5, k)
	}
	return dst
}

// Decode implements Message.
func (m *RangeRequest) Decode(data []byte) error {
	*m = RangeRequest{}
	r := read("RangeRequest", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Schema = r.bytes()
		case 2:
			m.Lo = r.bytes()
		case 3:
			m.Hi = r.bytes()
		case 4:
			m.Rows = r.uint64()
		case 5:
			r.item()
			m.Keys = append(m.Keys, r.bytes())
		}
	}
	return r.err
}

// Append implements Message.
func (m *KeysRequest) Append(dst []byte) []byte {
	dst = appendBytes(dst, 1, m.Schema)
	for _, k := range m.Keys {
		dst = appendItem(dst, 2, k)
	}
	return dst
}

// Decode implements Message.
func (m *KeysRequest) Decode(data []byte) error {
	*m = KeysRequest{}
	r := read("KeysRequest", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Schema = r.bytes()
		case 2:
			r.item()
			m.Keys = append(m.Keys, r.bytes())
		}
	}
	return r.err
}

// Append implements Message.
func (m *RangeReply) Append(dst []byte) []byte {
	dst = appendBytes(dst, 1, m.Block)
	dst = appendPosition(dst, 2, m.Low)
	dst = appendPosition(dst, 3, m.High)
	dst = appendBool(dst, 4, m.More)
	dst = appendBytes(dst, 5, m.RestLo)
	return appendBytes(dst, 6, m.RestHi)
}

// Decode implements Message.
func (m *RangeReply) Decode(data []byte) error {
	*m = RangeReply{}
	r := read("RangeReply", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Block = r.bytes()
		case 2:
			m.Low = r.position()
		case 3:
			m.High = r.position()
		case 4:
			m.More = r.bool()
		case 5:
			m.RestLo = r.bytes()
		case 6:
			m.RestHi = r.bytes()
		}
	}
	return r.err
}
