package wire

import (
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

type execution sdk.Execution

func (m *execution) Append(dst []byte) []byte {
	dst = appendString(dst, 1, m.Task)
	dst = appendString(dst, 2, m.TaskUID)
	dst = appendString(dst, 3, m.StoreUID)
	dst = appendString(dst, 4, m.ID)
	dst = appendUint(dst, 5, m.Epoch)
	dst = appendString(dst, 6, m.Writer)
	dst = appendSint(dst, 7, int64(m.Lanes))
	dst = appendString(dst, 8, m.Mapping)
	dst = appendBool(dst, 9, m.TakeOver)
	return appendString(dst, 10, m.Worker)
}

func (m *execution) Decode(data []byte) error {
	*m = execution{}
	r := read("Execution", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Task = r.string()
		case 2:
			m.TaskUID = r.string()
		case 3:
			m.StoreUID = r.string()
		case 4:
			m.ID = r.string()
		case 5:
			m.Epoch = r.uint64()
		case 6:
			m.Writer = r.string()
		case 7:
			m.Lanes = r.sint32()
		case 8:
			m.Mapping = r.string()
		case 9:
			m.TakeOver = r.bool()
		case 10:
			m.Worker = r.string()
		}
	}
	return r.err
}

func appendExecution(dst []byte, num int, ex sdk.Execution) []byte {
	if ex == (sdk.Execution{}) {
		return dst
	}
	return appendMessage(dst, num, (*execution)(&ex))
}

func (r *reader) execution() sdk.Execution {
	var ex execution
	r.message(&ex)
	return sdk.Execution(ex)
}

type point sdk.Point

func (m *point) Append(dst []byte) []byte {
	dst = appendString(dst, 1, m.Writer)
	dst = appendSint(dst, 2, int64(m.Lane))
	dst = appendUint(dst, 3, m.BatchNo)
	return appendPosition(dst, 4, m.Position)
}

func (m *point) Decode(data []byte) error {
	*m = point{}
	r := read("Point", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Writer = r.string()
		case 2:
			m.Lane = r.sint32()
		case 3:
			m.BatchNo = r.uint64()
		case 4:
			m.Position = r.position()
		}
	}
	return r.err
}

func appendPoints(dst []byte, num int, points []sdk.Point) []byte {
	for i := range points {
		dst = appendMessage(dst, num, (*point)(&points[i]))
	}
	return dst
}

func (r *reader) points(dst []sdk.Point) []sdk.Point {
	var p point
	r.item()
	r.message(&p)
	return append(dst, sdk.Point(p))
}

type stateItem batch.StateItem

func (m *stateItem) Append(dst []byte) []byte {
	dst = appendString(dst, 1, m.Key)
	dst = appendUint(dst, 2, m.Version)
	dst = appendBytes(dst, 3, m.Value)
	return appendBool(dst, 4, m.Deleted)
}

func (m *stateItem) Decode(data []byte) error {
	*m = stateItem{}
	r := read("StateItem", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Key = r.string()
		case 2:
			m.Version = r.uint64()
		case 3:
			m.Value = r.bytes()
		case 4:
			m.Deleted = r.bool()
		}
	}
	return r.err
}

func appendState(dst []byte, num int, items []batch.StateItem) []byte {
	for i := range items {
		dst = appendMessage(dst, num, (*stateItem)(&items[i]))
	}
	return dst
}

func (r *reader) state(dst []batch.StateItem) []batch.StateItem {
	var s stateItem
	r.item()
	r.message(&s)
	return append(dst, batch.StateItem(s))
}

type deadLetter sdk.DeadLetter

func (m *deadLetter) Append(dst []byte) []byte {
	dst = appendUint(dst, 1, m.Number)
	dst = appendString(dst, 2, m.Table)
	dst = appendBytes(dst, 3, m.Key)
	dst = appendBytes(dst, 4, m.Record)
	dst = appendPosition(dst, 5, m.Position)
	if m.Fault != (sdk.Fault{}) {
		dst = appendFault(dst, 6, &m.Fault)
	}
	if !m.At.IsZero() {
		dst = appendSint(dst, 7, m.At.UnixMicro())
	}
	return dst
}

func (m *deadLetter) Decode(data []byte) error {
	*m = deadLetter{}
	r := read("DeadLetter", data)
	for r.next() {
		switch r.num {
		case 1:
			m.Number = r.uint64()
		case 2:
			m.Table = r.string()
		case 3:
			m.Key = r.bytes()
		case 4:
			m.Record = r.bytes()
		case 5:
			m.Position = r.position()
		case 6:
			m.Fault = *r.fault()
		case 7:
			m.At = time.UnixMicro(r.sint64()).UTC()
		}
	}
	return r.err
}

func appendDeadLetters(dst []byte, num int, letters []sdk.DeadLetter) []byte {
	for i := range letters {
		dst = appendMessage(dst, num, (*deadLetter)(&letters[i]))
	}
	return dst
}

func (r *reader) deadLetters(dst []sdk.DeadLetter) []sdk.DeadLetter {
	var d deadLetter
	r.item()
	r.message(&d)
	return append(dst, sdk.DeadLetter(d))
}
