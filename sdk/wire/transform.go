package wire

// Append implements Message.
func (m *SchemaRequest) Append(dst []byte) []byte { return appendBytes(dst, 1, m.Schema) }

// Decode implements Message.
func (m *SchemaRequest) Decode(data []byte) error {
	*m = SchemaRequest{}
	r := read("SchemaRequest", data)
	for r.next() {
		if r.num == 1 {
			m.Schema = r.bytes()
		}
	}
	return r.err
}

// Append implements Message.
func (m *SchemaReply) Append(dst []byte) []byte {
	dst = appendBool(dst, 1, m.Drop)
	dst = appendBytes(dst, 2, m.Schema)
	return appendBool(dst, 3, m.Pass)
}

// Decode implements Message.
func (m *SchemaReply) Decode(data []byte) error {
	*m = SchemaReply{}
	r := read("SchemaReply", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Drop = r.bool()
		case 2:
			m.Schema = r.bytes()
		case 3:
			m.Pass = r.bool()
		}
	}
	return r.err
}

// Append implements Message.
func (m *TransformRequest) Append(dst []byte) []byte {
	dst = appendBytes(dst, 1, m.Block)
	return appendUints(dst, 2, m.Schemas)
}

// Decode implements Message.
func (m *TransformRequest) Decode(data []byte) error {
	*m = TransformRequest{}
	r := read("TransformRequest", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Block = r.bytes()
		case 2:
			r.item()
			m.Schemas = append(m.Schemas, r.uint64())
		}
	}
	return r.err
}

// Append implements Message.
func (m *TransformReply) Append(dst []byte) []byte { return appendBytes(dst, 1, m.Block) }

// Decode implements Message.
func (m *TransformReply) Decode(data []byte) error {
	*m = TransformReply{}
	r := read("TransformReply", data)
	for r.next() {
		if r.num == 1 {
			m.Block = r.bytes()
		}
	}
	return r.err
}
