package reader

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// tx is the transaction that is being read.
type tx struct {
	active    bool
	open      bool   // out has an entry of it open
	passed    bool   // since the last entry whole transactions went by without events
	begun     bool   // part of it was delivered
	xa        string // prepared transaction that it commits or rolls back
	ignored   bool   // written by a task whose changes are left out
	ordinal   uint64
	bounds    binlog.Bounds
	index     binlog.Indexer
	id        string
	committed int64
	covers    []batch.Cover
	startPos  []byte
	endPos    []byte
	ids       strings.Builder // keeps ids alive without an allocation each
}

// level is the inside of a compressed or prepared transaction that is being
// read in the place of the event that names it.
type level struct {
	scan   *binlog.Scanner
	until  int64 // offset after the last event; -1 = the end
	bounds binlog.Bounds
	close  func()
	// The rows of a prepared transaction are under the format of their own file.
	prepared bool
	spool    *spool // it is a whole transaction, too large for memory
}

// idSpace is how many bytes of transaction ids share an allocation.
const idSpace = 32 << 10

// step takes one step: a row, an event, or the end of a file.
func (r *Reader) step(out *batch.Builder) error {
	if r.iter.More() {
		r.begin1(out)
		if l := r.iter.Layout(); l.Sequence {
			if err := out.Truncate(l.Schema); err != nil {
				return err
			}
		}
		had := out.Len()
		if err := r.iter.Next(out); err != nil {
			return r.where(err)
		}
		if r.live != nil && out.Len() > had {
			r.noteRow(r.iter.Layout().Schema, out)
		}
		return r.finish(out)
	}
	if n := len(r.levels); n > 0 {
		return r.inside(&r.levels[n-1], out)
	}
	if !r.tx.active {
		if r.live != nil {
			return r.betweenLive(out)
		}
		return r.between()
	}
	ev := &r.ev
	if err := r.scan.Peek(&ev.Header); err != nil {
		return err
	}
	if ev.Type == binlog.TransactionPayload && ev.Size > payloadInMemory {
		return r.where(r.payloadFile(r.scan, &ev.Header))
	}
	if err := r.scan.Next(ev); err != nil {
		return err
	}
	if err := r.event(out, ev, &r.tx.bounds); err != nil {
		return err
	}
	return r.finish(out)
}

// finish ends the transaction when its last event has been worked off.
func (r *Reader) finish(out *batch.Builder) error {
	if r.iter.More() || len(r.levels) > 0 || r.scan.Offset() < r.tx.bounds.End {
		return nil
	}
	t := &r.tx
	if t.xa != "" { // behind its rows: until then a new reader needs to find them
		id := t.xa
		t.xa = ""
		if err := r.endPrepared(out, id); err != nil {
			return err
		}
	}
	t.active = false
	if r.live != nil {
		r.advanceLive()
	} else {
		r.here.off = t.bounds.End
	}
	if !t.open && !t.begun {
		t.passed = true
		return nil
	}
	r.begin1(out)
	t.open, t.begun, t.passed = false, false, false
	if !r.tells(out) {
		t.passed = true
		return out.EndTx(true, nil, nil)
	}
	t.endPos = r.mark(t.endPos[:0])
	return out.EndTx(true, nil, t.endPos)
}

// begin1 opens an entry of the transaction in out unless one is open.
func (r *Reader) begin1(out *batch.Builder) {
	t := &r.tx
	if t.open {
		return
	}
	t.open = true
	_ = out.BeginTx(batch.Tx{Begins: !t.begun, Ordinal: t.ordinal, Committed: t.committed, ID: t.id, Covers: t.covers})
	t.begun = true
}

// pause closes the open entry before out is handed over, and reports how far
// transactions without events have got.
func (r *Reader) pause(out *batch.Builder) error {
	t := &r.tx
	if t.open {
		failpoint.Hit("mysql.split")
		_, t.ordinal = out.OpenTx()
		t.open = false
		if r.sw.EndOff && r.live != nil {
			behind := r.live.set.Clone()
			behind.Add(r.live.sourceOf(&r.group), r.group.Number)
			return out.EndTx(false, behind.Append(nil), nil)
		}
		return out.EndTx(false, t.startPos, nil)
	}
	if t.passed && !t.begun && (r.live == nil || r.live.comparable()) {
		t.passed = false
		tx := batch.Tx{Begins: true}
		if l := r.live; l != nil {
			l.told = time.Now()
		} else {
			tx.Covers = r.cover(nil, r.here, r.here)
		}
		if err := out.BeginTx(tx); err != nil {
			return err
		}
		return out.EndTx(true, nil, r.mark(nil))
	}
	return nil
}

// roomy is the size of a position that each transaction may carry.
const roomy = 256

// tells reports whether the transaction that ends says where it ends. A large set
// is told once for some times its size of events.
func (r *Reader) tells(out *batch.Builder) bool {
	l := r.live
	if l == nil {
		return true
	}
	if !l.comparable() {
		return false
	}
	if l.kind == spotSet && l.split {
		if n := len(l.before) + len(l.after); n > roomy && l.ends > 0 && out.Size()-l.ends < 8*n {
			return false
		}
	}
	l.ends = out.Size()
	return true
}

// between reads what lies between transactions and begins the next one.
func (r *Reader) between() error {
	ev := &r.ev
	err := r.scan.Peek(&ev.Header)
	switch {
	case err == io.EOF:
		return r.nextFile()
	case errors.Is(err, binlog.ErrCut):
		return r.cut(&binlog.Bounds{Err: err})
	case err != nil:
		return err
	}
	switch ev.Type {
	case binlog.FormatDescription, binlog.PreviousGTIDs, binlog.MariaGTIDList, binlog.BinlogCheckpoint, binlog.Stop,
		binlog.Heartbeat, binlog.HeartbeatV2, binlog.Ignorable, binlog.TransactionContext, binlog.ViewChange:
		return r.scan.Next(ev)
	case binlog.Rotate:
		if err := r.scan.Next(ev); err != nil {
			return err
		}
		return r.rotate(ev)
	case binlog.StartEncryption:
		return fmt.Errorf("%w: %s: what follows was written with encrypt_binlog=ON and cannot be read as a file; copy it with mariadb-binlog --read-from-remote-server --raw, which writes it in the clear", binlog.ErrEncrypted, r.place())
	case binlog.Incident:
		if err := r.scan.Next(ev); err != nil {
			return err
		}
		return r.incident(ev)
	}
	if !ev.Type.Known() {
		if ev.Flags&binlog.FlagIgnorable != 0 {
			return r.scan.Skip(&ev.Header) // whatever its size
		}
		return r.unknown(ev)
	}
	if ev.Type.IsRows() || ev.Type == binlog.TableMap || ev.Type == binlog.Xid {
		return sdk.Faultf(sdk.CodeInvalidPosition, "%s: a %s event stands outside of any transaction, so %s is not a place between transactions", r.place(), ev.Type, r.here.String()).Suggest("begin at a position that the reader gave, or at earliest")
	}
	return r.enter()
}

// rotate checks that the file that follows is the one the log names.
func (r *Reader) rotate(ev *binlog.Event) error {
	next, err := binlog.DecodeRotate(ev.Body)
	if err != nil {
		return err
	}
	if ev.Flags&binlog.FlagArtificial != 0 || r.file+1 == len(r.files) || r.files[r.file].Digits == 0 {
		return nil
	}
	if _, number, digits := binlog.SplitName(next); digits > 0 && number != r.files[r.file+1].Number {
		return fmt.Errorf("%w: %s says that %s follows, the next file that is there is %s", binlog.ErrCorrupt, r.scan.Name(), next, r.files[r.file+1].Name())
	}
	return nil
}

func (r *Reader) incident(ev *binlog.Event) error {
	if r.sw.IncidentOff {
		return nil
	}
	n, msg := binlog.DecodeIncident(ev.Body)
	return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s at offset %d: INCIDENT event %d (%s): the server says that changes are missing from its log here", r.scan.Name(), ev.At, n, msg).
		Suggest("take the tables anew, then set a position after the incident")
}

func (r *Reader) unknown(ev *binlog.Event) error {
	return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s: event of type %d, which this reader does not know and which is not marked as ignorable; server %s", r.place(), uint8(ev.Type), r.scan.Format.Server).
		Suggest("use a version of the plugin that knows this server")
}

// place names the next event for messages.
func (r *Reader) place() string { return r.scan.Place(r.scan.Offset()) }

// where adds the place of the event that is being read to an error.
func (r *Reader) where(err error) error {
	if err == nil {
		return nil
	}
	var f *sdk.Fault
	if errors.As(err, &f) {
		return err
	}
	return fmt.Errorf("%s at offset %d, %s event: %w", r.scan.Name(), r.ev.At, r.ev.Type, err)
}

// enter begins the transaction that the next event begins.
func (r *Reader) enter() error {
	t := &r.tx
	if err := binlog.Index(r.scan, &t.index, r.lookAhead); err != nil {
		return err
	}
	t.bounds = t.index.Bounds
	switch b := &t.bounds; b.Outcome {
	case binlog.Cut:
		return r.cut(b)
	case binlog.Prepared:
		return r.prepared()
	}
	if t.bounds.End <= r.scan.Offset() {
		return fmt.Errorf("%w: %s: a transaction without events", binlog.ErrCorrupt, r.place())
	}
	t.active, t.begun, t.ignored, t.ordinal = true, false, false, 0
	t.id, t.committed = "", int64(t.bounds.Time)*1e6
	t.startPos = r.here.append(t.startPos[:0])
	end := r.here
	end.off = t.bounds.End
	t.covers = r.cover(t.covers[:0], r.here, end)
	return nil
}

// cut is what the end of the log in the middle of a transaction means.
func (r *Reader) cut(b *binlog.Bounds) error {
	return sdk.Faultf(sdk.CodeCorruptSource, "%s: %v; everything up to %s was read", r.scan.Name(), b.Err, r.here.String()).
		Suggest("copy the file again when the server has written more of it, and resume")
}

// cover says which of the points given to Open hold the transaction between two
// places, or how much of it.
func (r *Reader) cover(dst []batch.Cover, from, to place) []batch.Cover {
	for i := range r.points {
		p := &r.points[i]
		switch {
		case p.off < 0: // nothing yet
		case p.order(&to) >= 0:
			dst = append(dst, batch.Cover{Point: i})
		case p.ordinal > 0 && p.order(&from) == 0:
			dst = append(dst, batch.Cover{Point: i, Upto: p.ordinal})
		}
	}
	return dst
}

// id keeps the transaction's id.
func (t *tx) setID(id []byte) {
	if t.ids.Cap()-t.ids.Len() < len(id) {
		t.ids = strings.Builder{}
		t.ids.Grow(idSpace)
	}
	at := t.ids.Len()
	t.ids.Write(id)
	t.id = t.ids.String()[at:]
}
