package wire

// SnapshotRequest asks a reader for tables beside the stream, or for what it does.
type SnapshotRequest struct {
	Tables []string
	Action string // "pause", "resume"; "" = none
}

// SnapshotReply is how far a reader's snapshots are.
type SnapshotReply struct {
	Accepted      []string
	Paused        bool
	RowsPerSecond uint64
	Tables        []SnapshotTable
}

// SnapshotTable is one table in it.
type SnapshotTable struct {
	Table, Phase   string
	Rows, Estimate uint64
}

// Append implements Message.
func (m *SnapshotRequest) Append(dst []byte) []byte {
	return appendString(appendStrings(dst, 1, m.Tables), 2, m.Action)
}

// Decode implements Message.
func (m *SnapshotRequest) Decode(data []byte) error {
	*m = SnapshotRequest{}
	r := read("SnapshotRequest", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Tables = r.strings(m.Tables)
		case 2:
			m.Action = r.string()
		}
	}
	return r.err
}

// Append implements Message.
func (m *SnapshotReply) Append(dst []byte) []byte {
	dst = appendStrings(dst, 1, m.Accepted)
	dst = appendBool(dst, 2, m.Paused)
	dst = appendUint(dst, 3, m.RowsPerSecond)
	for i := range m.Tables {
		dst = appendMessage(dst, 4, &m.Tables[i])
	}
	return dst
}

// Decode implements Message.
func (m *SnapshotReply) Decode(data []byte) error {
	*m = SnapshotReply{}
	r := read("SnapshotReply", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Accepted = r.strings(m.Accepted)
		case 2:
			m.Paused = r.bool()
		case 3:
			m.RowsPerSecond = r.uint64()
		case 4:
			m.Tables = item(&r, m.Tables)
		}
	}
	return r.err
}

// Append implements Message.
func (m *SnapshotTable) Append(dst []byte) []byte {
	dst = appendString(dst, 1, m.Table)
	dst = appendString(dst, 2, m.Phase)
	dst = appendUint(dst, 3, m.Rows)
	return appendUint(dst, 4, m.Estimate)
}

// Decode implements Message.
func (m *SnapshotTable) Decode(data []byte) error {
	*m = SnapshotTable{}
	r := read("SnapshotTable", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Table = r.string()
		case 2:
			m.Phase = r.string()
		case 3:
			m.Rows = r.uint64()
		case 4:
			m.Estimate = r.uint64()
		}
	}
	return r.err
}
