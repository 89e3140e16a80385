package binlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Outcome is how a transaction ends.
type Outcome uint8

// The outcomes. Cut: the log ends inside of it. Plain: a statement outside of
// any transaction, such as a schema change.
const (
	Commit Outcome = iota
	Rollback
	Prepared
	Cut
	Plain
)

// Interval is a range of offsets.
type Interval struct{ From, To int64 }

// Bounds says where a transaction lies and how it ends.
type Bounds struct {
	Start, End int64
	Outcome    Outcome
	Time       uint32     // of its last event
	Next       uint32     // end of its last event as the server wrote it
	Undone     []Interval // parts that ROLLBACK TO SAVEPOINT took back
	Err        error      // Cut: what is missing
}

// Indexer follows the events of one transaction to its end. The zero value is
// ready for the first event.
type Indexer struct {
	Bounds
	begun, open bool
	savepoints  []savepoint
}

type savepoint struct {
	name string
	at   int64
}

// Reset makes x ready for another transaction.
func (x *Indexer) Reset() {
	*x = Indexer{Bounds: Bounds{Undone: x.Undone[:0]}, savepoints: x.savepoints[:0]}
}

// Wants reports whether Step needs the body of events of that type.
func Wants(t Type) bool {
	switch t {
	case Query, QueryCompressed, MariaGTID, XAPrepare:
		return true
	}
	return false
}

// Step takes the next event and reports whether it is the last of the
// transaction.
func (x *Indexer) Step(ev *Event) (done bool, err error) {
	if !x.begun {
		x.begun, x.Start = true, ev.At
	}
	x.End, x.Time, x.Next = ev.End, ev.Time, ev.Next
	switch t := ev.Type; t {
	case GTID, AnonymousGTID, GTIDTagged, MariaGTID:
		if ev.At != x.Start {
			return x.cut(ev, "another transaction begins")
		}
		if t == MariaGTID {
			var g Group
			if err := DecodeGroup(ev, nil, &g); err != nil {
				return false, err
			}
			x.open = !g.Standalone && !g.Completed
		}
	case Rotate, Stop, FormatDescription, PreviousGTIDs, MariaGTIDList:
		if ev.At != x.Start {
			return x.cut(ev, "the file ends")
		}
		return true, nil
	case Xid:
		return true, nil
	case XAPrepare:
		x.Outcome = Prepared
		_, one, err := AppendXID(nil, ev.Body)
		if one {
			x.Outcome = Commit
		}
		return true, err
	case TransactionPayload:
		return true, nil
	case ExecuteLoadQuery, Load, NewLoad, ExecLoad:
		if !x.open {
			x.Outcome = Plain
			return true, nil
		}
	case Query, QueryCompressed:
		return x.query(ev)
	case Incident:
		return true, nil
	}
	return false, nil
}

func (x *Indexer) cut(ev *Event, why string) (bool, error) {
	x.Outcome, x.End = Cut, ev.At
	x.Err = fmt.Errorf("%w: %s at offset %d before the transaction that begins at %d has ended", ErrCut, why, ev.At, x.Start)
	return true, nil
}

func (x *Indexer) query(ev *Event) (bool, error) {
	var st Statement
	if err := DecodeQuery(ev.Type, ev.Body, &st); err != nil {
		return false, err
	}
	switch verb, arg := Control(st.Text); verb {
	case Begin, XAStart:
		x.open = true
	case CommitTx:
		x.Outcome = Commit
		return true, nil
	case RollbackTx:
		x.Outcome = Rollback
		return true, nil
	case XACommit, XARollback:
		x.Outcome = Plain
		return true, nil
	case XAEnd:
	case Savepoint:
		x.savepoints = append(x.savepoints, savepoint{string(arg), ev.At})
	case RollbackTo:
		for i := len(x.savepoints) - 1; i >= 0; i-- {
			if bytes.EqualFold([]byte(x.savepoints[i].name), arg) {
				x.Undone = append(x.Undone, Interval{x.savepoints[i].at, ev.At})
				x.savepoints = x.savepoints[:i+1]
				return false, nil
			}
		}
		return false, fmt.Errorf("%w: ROLLBACK TO %s at offset %d, and the transaction that begins at %d has no such savepoint", ErrCorrupt, arg, ev.At, x.Start)
	default:
		if !x.open {
			x.Outcome = Plain
			return true, nil
		}
	}
	return false, nil
}

// Index finds the end of the transaction that begins at the next event of s. It
// looks into what s has buffered first and then, through open, further on in the
// file; s does not move.
func Index(s *Scanner, x *Indexer, open func(at int64) (*Scanner, error)) error {
	x.Reset()
	var a Ahead
	if err := s.Ahead(&a); err != nil {
		return err
	}
	var ev Event
	for {
		err := a.Next(&ev)
		if err == io.ErrShortBuffer {
			break
		}
		done, err := x.Step(&ev)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Place(ev.At), err)
		}
		if done {
			return nil
		}
	}
	if !x.begun {
		x.Start = a.Offset()
	}
	far, err := open(a.Offset())
	if err != nil {
		return err
	}
	return far.index(x)
}

func (s *Scanner) index(x *Indexer) error {
	var ev Event
	for {
		err := s.Peek(&ev.Header)
		if err == nil {
			if Wants(ev.Type) {
				s.check = false // the reading pass checks
				err = s.Next(&ev)
				s.check = true
			} else {
				ev.At, ev.Body = s.at, nil
				ev.End = s.at + int64(ev.Size)
				err = s.Skip(&ev.Header)
			}
		}
		switch {
		case err == io.EOF:
			x.Outcome = Cut
			x.Err = fmt.Errorf("%w: the file ends at offset %d before the transaction that begins at %d has ended", ErrCut, s.at, x.Start)
			return nil
		case errors.Is(err, ErrCut):
			x.Outcome, x.Err = Cut, err
			return nil
		case err != nil:
			return err
		}
		done, err := x.Step(&ev)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Place(ev.At), err)
		}
		if done {
			return nil
		}
	}
}

// IndexAll finds the end of a transaction that is all that s holds.
func IndexAll(s *Scanner, x *Indexer) error {
	x.Reset()
	return s.index(x)
}
