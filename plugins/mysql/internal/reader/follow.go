package reader

import (
	"fmt"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// betweenLive reads what the server sends between transactions and begins the next
// one. It returns binlog.ErrWait where nothing more has arrived.
func (r *Reader) betweenLive(out *batch.Builder) error {
	l, ev := r.live, &r.ev
	if l.gather.on {
		return r.enterLive(out)
	}
	if err := r.scan.Peek(&ev.Header); err != nil {
		return err
	}
	made := ev.Flags&binlog.FlagArtificial != 0 || ev.Next == 0 // by the server, for this stream: not in the file
	switch ev.Type {
	case binlog.Heartbeat, binlog.HeartbeatV2:
		return r.heartbeat(ev)
	case binlog.Rotate:
		at := r.scan.Offset()
		if err := r.scan.Next(ev); err != nil {
			return err
		}
		if !made {
			return nil
		}
		file, off, err := binlog.RotatePlace(ev.Body)
		if err != nil {
			return fmt.Errorf("%s: %w", r.scan.Place(at), err)
		}
		r.moveTo(file, off)
		return nil
	case binlog.FormatDescription:
		if err := r.scan.Next(ev); err != nil {
			return err
		}
		r.tables.forget()
		r.settle(ev, made && ev.Next == 0)
		return nil
	case binlog.PreviousGTIDs, binlog.MariaGTIDList, binlog.BinlogCheckpoint, binlog.Stop, binlog.StartEncryption,
		binlog.Ignorable, binlog.TransactionContext, binlog.ViewChange:
		if err := r.scan.Next(ev); err != nil {
			return err
		}
		r.settle(ev, made)
		return nil
	}
	// The server passes over what the position holds: the offset jumps.
	if from := binlog.EndOf(ev.Next, r.scan.Offset()+int64(ev.Size)) - int64(ev.Size); from != r.scan.Offset() {
		r.scan.SetPlace(r.scan.Name(), from)
	}
	if l.skipTo > 0 && r.scan.Offset() < l.skipTo {
		return r.passOver(ev)
	}
	switch {
	case ev.Type == binlog.Incident:
		if err := r.scan.Next(ev); err != nil {
			return err
		}
		return r.incident(ev)
	case !ev.Type.Known() && (ev.Flags&binlog.FlagIgnorable != 0 || r.sw.UnknownOff):
		err := r.scan.Next(ev)
		r.settle(ev, made)
		return err
	case !ev.Type.Known():
		return r.unknown(ev)
	case ev.Type.IsRows() || ev.Type == binlog.TableMap || ev.Type == binlog.Xid:
		return sdk.Faultf(sdk.CodeInvalidPosition, "%s: a %s event stands outside of any transaction, so this is not a place between transactions", r.place(), ev.Type).
			Suggest("begin at a position that the reader gave, or at earliest")
	}
	return r.enterLive(out)
}

// moveTo notes that events from another place of the log follow.
func (r *Reader) moveTo(file string, off int64) {
	r.scan.SetPlace(file, off)
	if l := r.live; l.skipTo > 0 {
		if name := r.here.name(); name != file {
			l.skipTo = 0
		} else {
			return
		}
	}
	r.here.setName(file)
	r.here.off = off
}

// settle notes the end of an event between transactions.
func (r *Reader) settle(ev *binlog.Event, made bool) {
	end := ev.At
	if !made {
		end = binlog.EndOf(ev.Next, ev.End)
	}
	r.scan.SetPlace(r.scan.Name(), end)
	if r.live.skipTo == 0 {
		r.here.off = end
	}
}

func (r *Reader) heartbeat(ev *binlog.Event) error {
	at := r.scan.Offset()
	if err := r.scan.Next(ev); err != nil {
		return err
	}
	file, off, err := binlog.HeartbeatPlace(ev)
	if err != nil {
		return fmt.Errorf("%s: %w", r.scan.Place(at), err)
	}
	l := r.live
	l.beat = true
	if file == r.scan.Name() && l.skipTo == 0 {
		if ev.Type == binlog.Heartbeat {
			off = binlog.EndOf(uint32(off), at)
		}
		at = max(at, off)
		r.here.off = max(r.here.off, at)
	}
	r.scan.SetPlace(r.scan.Name(), at)
	return nil
}

// passOver reads on to the offset that reading begins at, where a position of 32
// bits does not reach it.
func (r *Reader) passOver(ev *binlog.Event) error {
	if err := r.scan.Next(ev); err != nil {
		return err
	}
	switch l := r.live; {
	case ev.End == l.skipTo:
		l.skipTo = 0
	case ev.End > l.skipTo:
		return sdk.Faultf(sdk.CodePositionUnknown, "%s: an event goes from %d to %d, so %d is not a place between events", r.scan.Name(), ev.At, ev.End, l.skipTo).
			Suggest("use a position that the reader gave")
	}
	return nil
}

// enterLive begins the transaction that comes next, once its end has come.
func (r *Reader) enterLive(out *batch.Builder) error {
	l, t := r.live, &r.tx
	if err := l.gather.next(r.scan); err != nil {
		return err
	}
	l.gather.on, l.beat = false, false
	b := &l.gather.index.Bounds
	t.bounds = *b
	if sp := l.gather.spool; sp != nil {
		// From here on it is read like the inside of something.
		l.gather.spool = nil
		r.levels = append(r.levels, level{
			scan:  binlog.NewScanner(r.scan.Name(), sp.at(sp.from), sp.from, r.scan.Format, int(r.cfg.MaxEvent)),
			until: b.End, bounds: *b, spool: sp, close: sp.close,
		})
	}
	if b.Outcome == binlog.Cut {
		r.dropLevels()
		return r.cut(b)
	}
	if err := r.identify(); err != nil {
		r.dropLevels()
		return err
	}
	if b.Outcome == binlog.Prepared {
		return r.preparedLive(out)
	}
	t.active, t.begun, t.ignored, t.ordinal = true, false, false, 0
	t.committed = int64(b.Time) * 1e6
	if r.group.Committed > 0 {
		t.committed = r.group.Committed
	}
	t.startPos = r.markInside(t.startPos[:0])
	end := r.here
	end.off = binlog.EndOf(b.Next, b.End)
	t.covers = r.coverLive(t.covers[:0], end)
	return nil
}

func (r *Reader) dropLevels() {
	for i := range r.levels {
		r.levels[i].close()
	}
	r.levels = r.levels[:0]
}

// identify reads the id of the transaction that begins, and holds it to the way
// in which positions are given.
func (r *Reader) identify() error {
	l := r.live
	var ev binlog.Event
	if n := len(r.levels); n > 0 {
		first := binlog.NewScanner(r.scan.Name(), r.levels[n-1].spool.at(r.tx.bounds.Start), r.tx.bounds.Start, r.scan.Format, int(r.cfg.MaxEvent))
		if err := first.Next(&ev); err != nil {
			return err
		}
	} else {
		var a binlog.Ahead
		if err := r.scan.Ahead(&a); err != nil {
			return err
		}
		if err := a.Next(&ev); err != nil {
			return err
		}
	}
	id := r.group.ID[:0]
	r.group = binlog.Group{ID: id}
	switch ev.Type {
	case binlog.GTID, binlog.AnonymousGTID, binlog.GTIDTagged, binlog.MariaGTID:
		if err := binlog.DecodeGroup(&ev, id, &r.group); err != nil {
			return fmt.Errorf("%s: %w", r.scan.Place(ev.At), err)
		}
	}
	g := &r.group
	if l.sharing.joined && l.holds(g) {
		return errAgain // and what the server leaves out for us, a relay does not
	}
	r.tx.setID(g.ID)
	switch l.kind {
	case spotSet:
		if g.Number == 0 {
			return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s: a transaction without a GTID, and positions of this task are GTID sets", r.scan.Place(ev.At)).
				Suggest("set gtid_mode=ON at the source and begin after this place")
		}
	case spotDomains:
		if !g.MariaDB {
			return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s: a transaction without a GTID (%s event), and positions of this task are GTIDs", r.scan.Place(ev.At), ev.Type).
				Suggest("begin after this place")
		}
		if last, ok := l.dom.Last(g.Domain); ok && g.Sequence <= last.Seq {
			return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s: transaction %s comes after %s of the same domain, so sequence numbers do not say what a position holds", r.scan.Place(ev.At), g.ID, last).
				Suggest("let one server at a time write into a domain, or give each its own gtid_domain_id; gtid_strict_mode=ON makes the source refuse it; then begin after this place")
		}
	}
	return nil
}

// advanceLive notes that the transaction has been worked off.
func (r *Reader) advanceLive() {
	r.here.off = binlog.EndOf(r.tx.bounds.Next, r.tx.bounds.End)
	r.scan.SetPlace(r.scan.Name(), r.here.off)
	r.live.advance(&r.group, &r.here)
}

// gtidSet is the set of MySQL here, for those who wait for it at the server.
func (l *live) gtidSet() string {
	switch l.kind {
	case spotSet:
		return l.set.String()
	case spotDomains:
		return l.dom.String()
	}
	return ""
}
