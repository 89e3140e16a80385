package wire

import "github.com/datalink-go/datalink/sdk"

// Fault is sdk.Fault as a message. Where a reply has no field for one, gRPC
// carries it as a detail of the status and a module as the reply itself, see
// AppendReply.
type Fault struct{ sdk.Fault }

// Append implements Message.
func (m *Fault) Append(dst []byte) []byte {
	dst = appendString(dst, 1, string(m.Code))
	dst = appendString(dst, 2, m.Message)
	dst = appendBool(dst, 3, m.Retryable)
	dst = appendString(dst, 4, m.Suggestion)
	if m.Claimant != nil {
		dst = appendMessage(dst, 5, (*claimant)(m.Claimant))
	}
	return dst
}

// Decode implements Message.
func (m *Fault) Decode(data []byte) error {
	*m = Fault{}
	r := read("Fault", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Code = sdk.Code(r.string())
		case 2:
			m.Message = r.string()
		case 3:
			m.Retryable = r.bool()
		case 4:
			m.Suggestion = r.string()
		case 5:
			var c claimant
			r.message(&c)
			m.Claimant = (*sdk.Claimant)(&c)
		}
	}
	return r.err
}

type claimant sdk.Claimant

func (m *claimant) Append(dst []byte) []byte {
	dst = appendString(dst, 1, m.Execution)
	dst = appendUint(dst, 2, m.Epoch)
	dst = appendString(dst, 3, m.TaskUID)
	dst = appendString(dst, 4, m.StoreUID)
	return appendString(dst, 5, m.Worker)
}

func (m *claimant) Decode(data []byte) error {
	*m = claimant{}
	r := read("Claimant", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Execution = r.string()
		case 2:
			m.Epoch = r.uint64()
		case 3:
			m.TaskUID = r.string()
		case 4:
			m.StoreUID = r.string()
		case 5:
			m.Worker = r.string()
		}
	}
	return r.err
}

func appendFault(dst []byte, num int, f *sdk.Fault) []byte {
	if f == nil {
		return dst
	}
	return appendMessage(dst, num, &Fault{*f})
}

func (r *reader) fault() *sdk.Fault {
	var f Fault
	r.message(&f)
	return &f.Fault
}

// The first byte of a reply of a module.
const (
	replyOK    = 0
	replyFault = 1
)

// AppendReply appends the answer to a call where the carrier has no status of
// its own (WASM): byte 0 and the reply, or byte 1 and the Fault of err.
func AppendReply(dst []byte, reply Message, err error) []byte {
	if err != nil {
		return (&Fault{*sdk.AsFault(err)}).Append(append(dst, replyFault))
	}
	return reply.Append(append(dst, replyOK))
}

// DecodeReply is the inverse of AppendReply: it fills reply, or returns the
// *sdk.Fault that came instead. Other errors wrap ErrCorrupt.
func DecodeReply(data []byte, reply Message) error {
	r := read("reply", data)
	if len(data) == 0 {
		r.fail("empty, want a status byte")
		return r.err
	}
	switch data[0] {
	case replyOK:
		return reply.Decode(data[1:])
	case replyFault:
		var f Fault
		if err := f.Decode(data[1:]); err != nil {
			return err
		}
		return &f.Fault
	}
	r.fail("status byte %d, want 0 or 1", data[0])
	return r.err
}
