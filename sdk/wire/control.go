package wire

import "github.com/datalink-go/datalink/sdk"

func decodeEmpty(what string, data []byte) error {
	r := read(what, data)
	for r.next() {
		continue
	}
	return r.err
}

// Append implements Message.
func (m *Empty) Append(dst []byte) []byte { return dst }

// Decode implements Message.
func (m *Empty) Decode(data []byte) error { return decodeEmpty("Empty", data) }

// Append implements Message.
func (m *CheckRequest) Append(dst []byte) []byte { return dst }

// Decode implements Message.
func (m *CheckRequest) Decode(data []byte) error { return decodeEmpty("CheckRequest", data) }

func (m *Limits) fields() [9]*uint64 {
	return [...]*uint64{
		&m.Message, &m.Record, &m.Block, &m.Full, &m.Events,
		&m.WindowRecords, &m.WindowBytes, &m.TransactionRecords, &m.TransactionBytes,
	}
}

// Append implements Message.
func (m *Limits) Append(dst []byte) []byte {
	for i, f := range m.fields() {
		dst = appendUint(dst, i+1, *f)
	}
	return dst
}

// Decode implements Message.
func (m *Limits) Decode(data []byte) error {
	*m = Limits{}
	f := m.fields()
	r := read("Limits", data)
	for r.next() {
		if r.num <= len(f) {
			*f[r.num-1] = r.uint64()
		}
	}
	return r.err
}

// Append implements Message.
func (m *DescribeRequest) Append(dst []byte) []byte {
	dst = appendUint(dst, 1, uint64(m.Protocol))
	return appendStrings(dst, 2, m.Capabilities)
}

// Decode implements Message.
func (m *DescribeRequest) Decode(data []byte) error {
	*m = DescribeRequest{}
	r := read("DescribeRequest", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Protocol = r.uint32()
		case 2:
			m.Capabilities = r.strings(m.Capabilities)
		}
	}
	return r.err
}

func (r *reader) strings(dst []string) []string {
	r.item()
	return append(dst, r.string())
}

// Append implements Message.
func (m *DescribeReply) Append(dst []byte) []byte { return appendBytes(dst, 1, m.Manifest) }

// Decode implements Message.
func (m *DescribeReply) Decode(data []byte) error {
	*m = DescribeReply{}
	r := read("DescribeReply", data)
	for r.next() {
		if r.num == 1 {
			m.Manifest = r.bytes()
		}
	}
	return r.err
}

// Append implements Message.
func (m *ConfigureRequest) Append(dst []byte) []byte {
	dst = appendString(dst, 1, m.Role)
	dst = appendString(dst, 2, m.Task)
	dst = appendString(dst, 3, m.Name)
	dst = appendBytes(dst, 4, m.Config)
	if m.Limits != (Limits{}) {
		dst = appendMessage(dst, 5, &m.Limits)
	}
	dst = appendString(dst, 6, m.LogLevel)
	return appendStrings(dst, 7, m.FailPoints)
}

// Decode implements Message.
func (m *ConfigureRequest) Decode(data []byte) error {
	*m = ConfigureRequest{}
	r := read("ConfigureRequest", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Role = r.string()
		case 2:
			m.Task = r.string()
		case 3:
			m.Name = r.string()
		case 4:
			m.Config = r.bytes()
		case 5:
			r.message(&m.Limits)
		case 6:
			m.LogLevel = r.string()
		case 7:
			m.FailPoints = r.strings(m.FailPoints)
		}
	}
	return r.err
}

// Append implements Message.
func (m *ConfigureReply) Append(dst []byte) []byte {
	for i := range m.Problems {
		dst = appendMessage(dst, 1, (*problem)(&m.Problems[i]))
	}
	if m.Limits != (Limits{}) {
		dst = appendMessage(dst, 2, &m.Limits)
	}
	dst = appendStrings(dst, 3, m.Capabilities)
	dst = appendString(dst, 4, m.Level)
	return appendUint(dst, 5, uint64(m.Lanes))
}

// Decode implements Message.
func (m *ConfigureReply) Decode(data []byte) error {
	*m = ConfigureReply{}
	r := read("ConfigureReply", data)
	for r.next() {
		switch r.num {
		case 1:
			var p problem
			r.item()
			r.message(&p)
			m.Problems = append(m.Problems, Problem(p))
		case 2:
			r.message(&m.Limits)
		case 3:
			m.Capabilities = r.strings(m.Capabilities)
		case 4:
			m.Level = r.string()
		case 5:
			m.Lanes = r.uint32()
		}
	}
	return r.err
}

type problem sdk.Problem

func (m *problem) Append(dst []byte) []byte {
	dst = appendString(dst, 1, m.Path)
	dst = appendString(dst, 2, m.Found)
	dst = appendString(dst, 3, m.Expected)
	return appendString(dst, 4, m.Message)
}

func (m *problem) Decode(data []byte) error {
	*m = problem{}
	r := read("Problem", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Path = r.string()
		case 2:
			m.Found = r.string()
		case 3:
			m.Expected = r.string()
		case 4:
			m.Message = r.string()
		}
	}
	return r.err
}

// Append implements Message.
func (m *CheckReply) Append(dst []byte) []byte {
	for i := range m.Findings {
		dst = appendMessage(dst, 1, (*finding)(&m.Findings[i]))
	}
	return dst
}

// Decode implements Message.
func (m *CheckReply) Decode(data []byte) error {
	*m = CheckReply{}
	r := read("CheckReply", data)
	for r.next() {
		if r.num == 1 {
			var f finding
			r.item()
			r.message(&f)
			m.Findings = append(m.Findings, sdk.Finding(f))
		}
	}
	return r.err
}

type finding sdk.Finding

func (m *finding) Append(dst []byte) []byte {
	dst = appendUint(dst, 1, uint64(m.Severity))
	dst = appendString(dst, 2, m.Subject)
	dst = appendString(dst, 3, m.Message)
	return appendString(dst, 4, m.Advice)
}

func (m *finding) Decode(data []byte) error {
	*m = finding{}
	r := read("Finding", data)
	for r.next() {
		switch r.num {
		case 1:
			v := r.uint32()
			if v > uint32(sdk.Error) {
				r.fail("severity %d, want 0 to %d", v, sdk.Error)
			}
			m.Severity = sdk.Severity(v)
		case 2:
			m.Subject = r.string()
		case 3:
			m.Message = r.string()
		case 4:
			m.Advice = r.string()
		}
	}
	return r.err
}

// Append implements Message.
func (m *DiscoverRequest) Append(dst []byte) []byte { return appendString(dst, 1, m.After) }

// Decode implements Message.
func (m *DiscoverRequest) Decode(data []byte) error {
	*m = DiscoverRequest{}
	return decodeString("DiscoverRequest", data, &m.After)
}

func decodeString(what string, data []byte, s *string) error {
	r := read(what, data)
	for r.next() {
		if r.num == 1 {
			*s = r.string()
		}
	}
	return r.err
}

// Append implements Message.
func (m *DiscoverReply) Append(dst []byte) []byte {
	for _, s := range m.Schemas {
		dst = appendItem(dst, 1, s)
	}
	return appendBool(dst, 2, m.More)
}

// Decode implements Message.
func (m *DiscoverReply) Decode(data []byte) error {
	*m = DiscoverReply{}
	r := read("DiscoverReply", data)
	for r.next() {
		switch r.num {
		case 1:
			r.item()
			m.Schemas = append(m.Schemas, r.bytes())
		case 2:
			m.More = r.bool()
		}
	}
	return r.err
}

// Append implements Message.
func (m *ReleaseRequest) Append(dst []byte) []byte { return appendString(dst, 1, m.TaskUID) }

// Decode implements Message.
func (m *ReleaseRequest) Decode(data []byte) error {
	*m = ReleaseRequest{}
	return decodeString("ReleaseRequest", data, &m.TaskUID)
}
