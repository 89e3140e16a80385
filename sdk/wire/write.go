package wire

import "encoding/binary"

// Append implements Message.
func (m *ClaimRequest) Append(dst []byte) []byte { return appendExecution(dst, 1, m.Execution) }

// Decode implements Message.
func (m *ClaimRequest) Decode(data []byte) error {
	*m = ClaimRequest{}
	r := read("ClaimRequest", data)
	for r.next() {
		if r.num == 1 {
			m.Execution = r.execution()
		}
	}
	return r.err
}

// Append implements Message.
func (m *ClaimReply) Append(dst []byte) []byte {
	dst = appendPoints(dst, 1, m.Points)
	dst = appendState(dst, 2, m.State)
	dst = appendDeadLetters(dst, 3, m.DeadLetters)
	dst = appendUint(dst, 4, m.Ceiling)
	dst = appendSint(dst, 5, int64(m.Lanes))
	return appendString(dst, 6, m.Mapping)
}

// Decode implements Message.
func (m *ClaimReply) Decode(data []byte) error {
	*m = ClaimReply{}
	r := read("ClaimReply", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Points = r.points(m.Points)
		case 2:
			m.State = r.state(m.State)
		case 3:
			m.DeadLetters = r.deadLetters(m.DeadLetters)
		case 4:
			m.Ceiling = r.uint64()
		case 5:
			m.Lanes = r.sint32()
		case 6:
			m.Mapping = r.string()
		}
	}
	return r.err
}

// Append implements Message.
func (m *WriteRequest) Append(dst []byte) []byte {
	dst = appendUint(dst, 1, m.Seq)
	dst = appendUint(dst, 2, uint64(m.Attempt))
	dst = appendBytes(dst, 3, m.Block)
	dst = appendPosition(dst, 4, m.First)
	dst = appendPosition(dst, 5, m.Last)
	dst = appendSint(dst, 6, m.DeadlineMicros)
	dst = appendUint(dst, 7, m.VersionBase)
	dst = appendUint(dst, 8, m.Ceiling)
	dst = appendDeadLetters(dst, 9, m.SetAside)
	dst = appendUints(dst, 10, m.Dropped)
	dst = appendBool(dst, 11, m.Drain)
	for _, l := range m.Lanes {
		dst = binary.AppendVarint(appendTag(dst, 12, wireVarint), l)
	}
	dst = appendBool(dst, 13, m.Split)
	for _, l := range m.Behind {
		dst = binary.AppendVarint(appendTag(dst, 14, wireVarint), l)
	}
	return dst
}

// Decode implements Message.
func (m *WriteRequest) Decode(data []byte) error {
	*m = WriteRequest{}
	r := read("WriteRequest", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Seq = r.uint64()
		case 2:
			m.Attempt = r.uint32()
		case 3:
			m.Block = r.bytes()
		case 4:
			m.First = r.position()
		case 5:
			m.Last = r.position()
		case 6:
			m.DeadlineMicros = r.sint64()
		case 7:
			m.VersionBase = r.uint64()
		case 8:
			m.Ceiling = r.uint64()
		case 9:
			m.SetAside = r.deadLetters(m.SetAside)
		case 10:
			r.item()
			m.Dropped = append(m.Dropped, r.uint64())
		case 11:
			m.Drain = r.bool()
		case 12:
			r.item()
			m.Lanes = append(m.Lanes, r.sint64())
		case 13:
			m.Split = r.bool()
		case 14:
			r.item()
			m.Behind = append(m.Behind, r.sint64())
		}
	}
	return r.err
}

// Append implements Message.
func (m *WriteReply) Append(dst []byte) []byte {
	dst = appendUint(dst, 1, m.Accepted)
	dst = appendUint(dst, 2, m.Acked)
	dst = appendUint(dst, 3, uint64(m.Attempt))
	dst = appendUint(dst, 4, m.FailedSeq)
	for i := range m.Records {
		dst = appendMessage(dst, 5, &m.Records[i])
	}
	dst = appendFault(dst, 6, m.Fault)
	dst = appendPoints(dst, 7, m.Points)
	return appendUint(dst, 8, m.Skipped)
}

// Decode implements Message.
func (m *WriteReply) Decode(data []byte) error {
	*m = WriteReply{}
	r := read("WriteReply", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Accepted = r.uint64()
		case 2:
			m.Acked = r.uint64()
		case 3:
			m.Attempt = r.uint32()
		case 4:
			m.FailedSeq = r.uint64()
		case 5:
			m.Records = item(&r, m.Records)
		case 6:
			m.Fault = r.fault()
		case 7:
			m.Points = r.points(m.Points)
		case 8:
			m.Skipped = r.uint64()
		}
	}
	return r.err
}

// Append implements Message.
func (m *RecordFault) Append(dst []byte) []byte {
	dst = appendUint(dst, 1, m.Index)
	return appendFault(dst, 2, &m.Fault)
}

// Decode implements Message.
func (m *RecordFault) Decode(data []byte) error {
	*m = RecordFault{}
	r := read("RecordFault", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Index = r.uint64()
		case 2:
			m.Fault = *r.fault()
		}
	}
	return r.err
}
