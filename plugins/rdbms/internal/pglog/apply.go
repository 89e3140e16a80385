package pglog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgout"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// tx is the transaction that is being delivered.
type tx struct {
	active    bool
	open      bool // out has an entry of it open
	begun     bool // part of it was delivered
	final     lsn  // of its commit record
	end       lsn  // after it; 0 = not known yet
	xid       uint32
	index     uint64 // changes of it so far
	before    uint64 // events before the change with that index
	committed int64
	id        string
	covers    []batch.Cover
	start     []byte
	replay    *replay // its messages, where it was streamed
	ids       strings.Builder
}

// Ordinals: the i-th change of a transaction has i·256 + 255; schema changes and
// state that it brings along come before it. So a change has the same ordinal
// whether or not the reader knew its table already.
const (
	slots     = 256
	maxBefore = slots - 1
)

// message works off one message of the log.
func (r *Reader) message(ctx context.Context, out *batch.Builder, m []byte) error {
	if len(m) == 0 {
		return r.corrupt(fmt.Errorf("%w: empty", pgout.ErrCorrupt))
	}
	if r.segment != nil {
		return r.streamed(m)
	}
	switch m[0] {
	case pgout.Begin:
		b, err := pgout.ReadBegin(m)
		if err != nil {
			return r.corrupt(err)
		}
		r.enter(lsn(b.Final), b.XID, b.Time)
		return nil
	case pgout.Commit:
		c, err := pgout.ReadCommit(m)
		if err != nil {
			return r.corrupt(err)
		}
		r.tx.end = lsn(c.End)
		return r.leave(out)
	case pgout.StreamStart, pgout.StreamCommit, pgout.StreamAbort:
		s, err := pgout.ReadStream(m)
		if err != nil {
			return r.corrupt(err)
		}
		return r.stream(m[0], &s)
	}
	return r.change(ctx, out, m)
}

// change works off a message inside of a transaction.
func (r *Reader) change(ctx context.Context, out *batch.Builder, m []byte) error {
	switch m[0] {
	case pgout.Relation:
		return r.relate(ctx, m)
	case pgout.TypeInfo:
		return nil // the catalog says more
	case pgout.Insert, pgout.Update, pgout.Delete:
		return r.row(ctx, out, m)
	case pgout.Truncate:
		return r.truncate(out, m)
	case pgout.Origin:
		name, err := pgout.ReadOrigin(m)
		if err != nil {
			return r.corrupt(err)
		}
		r.begin1(out)
		return out.Origin(name)
	case pgout.Message:
		return nil // only those of plugins that were asked for
	}
	return sdk.Faultf(sdk.CodeUnsupportedEvent, "after %s: message of type %q, which this reader does not know", r.here, m[0]).Suggest("use a version of the plugin that knows this server")
}

func (r *Reader) corrupt(err error) error {
	return sdk.Faultf(sdk.CodeCorruptSource, "after %s: %v", r.here, err)
}

// enter begins a transaction.
func (r *Reader) enter(final lsn, xid uint32, time int64) {
	t := &r.tx
	t.active, t.open, t.begun = true, false, false
	t.final, t.end, t.xid, t.index, t.before = final, 0, xid, 0, 0
	t.committed = time + epoch2000
	t.id = t.name(xid)
	p := place{lsn: final, system: r.here.system, timeline: r.here.timeline}
	if r.here.lsn == final {
		p.step = r.here.step
	}
	t.start = p.append(t.start[:0])
	t.covers = r.cover(t.covers[:0], final)
	if r.win.until > 0 && final >= r.win.until {
		r.closeWindows()
	}
}

// name keeps ids alive without an allocation each.
func (t *tx) name(xid uint32) string {
	if t.ids.Cap()-t.ids.Len() < 16 {
		t.ids = strings.Builder{}
		t.ids.Grow(16 << 10)
	}
	at := t.ids.Len()
	var buf [10]byte
	t.ids.WriteString("xid ")
	t.ids.Write(strconv.AppendUint(buf[:0], uint64(xid), 10))
	return t.ids.String()[at:]
}

// cover says which points hold the transaction whose commit record is at final, or
// how much of it.
func (r *Reader) cover(dst []batch.Cover, final lsn) []batch.Cover {
	for i := range r.points {
		p := &r.points[i]
		switch {
		case p.zero:
			// A writer without progress gets all of it in a snapshot that comes yet.
			if r.pending() {
				dst = append(dst, batch.Cover{Point: i})
			}
		case p.lsn > final:
			dst = append(dst, batch.Cover{Point: i})
		case p.lsn == final && p.ordinal > 0 && p.step%2 == 0:
			dst = append(dst, batch.Cover{Point: i, Upto: p.ordinal})
		}
	}
	return dst
}

// begin1 opens an entry of the transaction in out unless one is open.
func (r *Reader) begin1(out *batch.Builder) {
	t := &r.tx
	if t.open {
		return
	}
	t.open = true
	_ = out.BeginTx(batch.Tx{Begins: !t.begun, Ordinal: t.index * slots, Start: t.start, Committed: t.committed, ID: t.id, Covers: t.covers})
	t.begun = true
}

// leave ends the transaction.
func (r *Reader) leave(out *batch.Builder) error {
	t := &r.tx
	if !t.active {
		return r.corrupt(fmt.Errorf("%w: commit outside of a transaction", pgout.ErrCorrupt))
	}
	t.active = false
	r.here.lsn, r.here.step = t.end, 0
	if t.begun {
		r.handed.fresh = append(r.handed.fresh, t.xid)
	}
	if r.tx.replay != nil {
		r.tx.replay.spill.close()
		r.tx.replay = nil
	}
	if !t.begun {
		r.moved = true
		return nil
	}
	r.begin1(out)
	t.open, t.begun = false, false
	r.moved = false
	r.posBuf = r.here.append(r.posBuf[:0])
	return out.EndTx(true, nil, r.posBuf)
}

// pause closes the open entry before out is handed over.
func (r *Reader) pause(out *batch.Builder) error {
	t := &r.tx
	if !t.open {
		return nil
	}
	t.open = false
	return out.EndTx(false, t.start, nil)
}

// relation finds the table of a change.
func (r *Reader) relation(id uint32) (*relation, error) {
	rel := r.rels[id]
	if rel == nil {
		return nil, r.corrupt(fmt.Errorf("%w: change of relation %d, which was not described", pgout.ErrCorrupt, id))
	}
	return rel, nil
}

// row delivers an insert, update or delete.
func (r *Reader) row(ctx context.Context, out *batch.Builder, m []byte) error {
	msg := &r.rowMsg
	if err := pgout.ReadRow(m, msg); err != nil {
		return r.corrupt(err)
	}
	rel, err := r.relation(msg.Relation)
	if err != nil {
		return err
	}
	t := &r.tx
	index := t.index
	t.index++
	if rel.skip {
		return nil
	}
	if rel.win != nil {
		return r.windowed(ctx, out, rel, m[0], index)
	}
	return r.emit(out, rel, m[0], index)
}

// ahead delivers what a change brings along.
func (r *Reader) ahead(out *batch.Builder, rel *relation, index uint64) error {
	at := index*slots + 1
	for i := range rel.changes {
		out.SetOrdinal(at)
		if err := out.Change(&rel.changes[i]); err != nil {
			return err
		}
		at++
	}
	item, err := r.stateItem(rel.id, rel.item)
	if err != nil {
		return err
	}
	out.SetOrdinal(index*slots + maxBefore - 1)
	rel.changes, rel.item = nil, nil
	return out.StateItem(item)
}

// emit appends the row of r.rowMsg.
func (r *Reader) emit(out *batch.Builder, rel *relation, op byte, index uint64) error {
	msg := &r.rowMsg
	r.begin1(out)
	if rel.item != nil {
		if err := r.ahead(out, rel, index); err != nil {
			return err
		}
	}
	out.SetOrdinal(index*slots + maxBefore)
	kind := batch.Insert
	switch op {
	case pgout.Update:
		kind = batch.Update
	case pgout.Delete:
		kind = batch.Delete
	}
	if err := out.BeginRow(kind, rel.schema); err != nil {
		return err
	}
	if err := r.images(out, rel, msg); err != nil {
		out.DropRow()
		return fmt.Errorf("%s, %s of %s: %w", r.tx.id, kind, rel.name, err)
	}
	if err := out.EndRow(); err != nil {
		return r.refused(rel, kind, err)
	}
	return nil
}

func (r *Reader) refused(rel *relation, kind batch.Kind, err error) error {
	if errors.Is(err, batch.ErrTooLarge) {
		return sdk.Faultf(sdk.CodeTooLarge, "%s, %s of %s: %v", r.tx.id, kind, rel.name, err)
	}
	return fmt.Errorf("%s, %s of %s: %w", r.tx.id, kind, rel.name, err)
}

func (r *Reader) images(out *batch.Builder, rel *relation, msg *pgout.RowMsg) error {
	if len(msg.Old) > 0 {
		out.BeginImage(batch.BeforeImage)
		if err := put(out, rel, msg.Old, nil, msg.OldKey); err != nil {
			return err
		}
		out.EndImage()
	}
	if len(msg.New) > 0 {
		out.BeginImage(batch.AfterImage)
		var old pgout.Tuple
		if !msg.OldKey {
			old = msg.Old
		}
		if err := put(out, rel, msg.New, old, false); err != nil {
			return err
		}
		out.EndImage()
	}
	return nil
}

// put appends a tuple. KeyOnly: the other columns are not in the log. A value that
// the log leaves out since it has not changed is taken from old, where that has it.
func put(out *batch.Builder, rel *relation, t, old pgout.Tuple, keyOnly bool) error {
	if len(t) != len(rel.columns) {
		return fmt.Errorf("%w: %d values for the %d columns of %s", pgout.ErrCorrupt, len(t), len(rel.columns), rel.name)
	}
	for i := range t {
		f := &t[i]
		if f.Kind == 'u' && i < len(old) && old[i].Kind != 'u' {
			f = &old[i]
		}
		switch {
		case keyOnly && !rel.key[i]:
			out.PutAbsent()
		case f.Kind == 't':
			if err := rel.columns[i].Put(out, f.Data); err != nil {
				return sdk.Faultf(sdk.CodeCorruptSource, "column %s of %s: %v", rel.schema.Columns[i].Name, rel.name, err)
			}
		case f.Kind == 'n':
			out.PutNull()
		case f.Kind == 'u':
			out.PutUnchanged()
		default:
			return fmt.Errorf("%w: column %s of %s of kind %q", pgout.ErrCorrupt, rel.schema.Columns[i].Name, rel.name, f.Kind)
		}
	}
	return nil
}

// truncate delivers the truncation of each table for itself.
func (r *Reader) truncate(out *batch.Builder, m []byte) error {
	msg, err := pgout.ReadTruncate(m)
	if err != nil {
		return r.corrupt(err)
	}
	for _, id := range msg.Relations {
		rel, err := r.relation(id)
		if err != nil {
			return err
		}
		index := r.tx.index
		r.tx.index++
		if rel.skip {
			continue
		}
		if rel.win != nil {
			done, err := r.truncated(out, rel, index)
			if err != nil || done {
				return err
			}
		}
		r.begin1(out)
		if rel.item != nil {
			if err := r.ahead(out, rel, index); err != nil {
				return err
			}
		}
		out.SetOrdinal(index*slots + maxBefore)
		if err := out.Truncate(rel.schema); err != nil {
			return err
		}
	}
	return nil
}

// stream begins a segment of a transaction that has not committed yet, or ends the
// transaction.
func (r *Reader) stream(kind byte, s *pgout.StreamMsg) error {
	sp := r.spills[s.XID]
	switch kind {
	case pgout.StreamStart:
		if sp == nil {
			sp = &spill{dir: r.cfg.SpillDir}
			r.spills[s.XID] = sp
		}
		r.segment, r.segmentID = sp, s.XID
	case pgout.StreamAbort:
		switch {
		case sp == nil:
		case s.Sub == s.XID:
			sp.close()
			delete(r.spills, s.XID)
		default:
			sp.abort(s.Sub)
		}
	case pgout.StreamCommit:
		if sp == nil {
			sp = &spill{}
		}
		delete(r.spills, s.XID)
		r.enter(lsn(s.Commit), s.XID, s.Time)
		r.tx.end = lsn(s.End)
		r.tx.replay = sp.replay(r.cfg.Switches.AbortOff)
	}
	return nil
}

// streamed keeps a message of a segment.
func (r *Reader) streamed(m []byte) error {
	switch m[0] {
	case pgout.StreamStop:
		r.segment = nil
		return nil
	case pgout.Origin:
		return r.segment.add(r.segmentID, m)
	}
	sub, ok := pgout.Sub(m)
	if !ok {
		return r.corrupt(fmt.Errorf("%w: %q in a segment", pgout.ErrCorrupt, m[0]))
	}
	return r.segment.add(sub, pgout.Plain(m))
}

// replayOne works off the next message of a streamed transaction.
func (r *Reader) replayOne(ctx context.Context, out *batch.Builder) error {
	m, err := r.tx.replay.next()
	if errors.Is(err, io.EOF) {
		return r.leave(out)
	}
	if err != nil {
		return err
	}
	return r.change(ctx, out, m)
}
