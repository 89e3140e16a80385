package reader

import (
	"fmt"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// event works off one event of a transaction.
func (r *Reader) event(out *batch.Builder, ev *binlog.Event, b *binlog.Bounds) error {
	r.silent += uint64(ev.Size)
	switch t := ev.Type; {
	case t == binlog.TableMap:
		return r.where(r.tableMap(ev))
	case t.IsRows():
		return r.where(r.rows(ev, b))
	}
	switch ev.Type {
	case binlog.GTID, binlog.AnonymousGTID, binlog.GTIDTagged, binlog.MariaGTID:
		if r.live != nil || len(r.levels) > 0 {
			return nil // known; or of the prepared part, and the commit has its own
		}
		g := &r.group
		if err := binlog.DecodeGroup(ev, r.group.ID[:0], g); err != nil {
			return r.where(err)
		}
		r.tx.setID(g.ID)
		if g.Committed > 0 {
			r.tx.committed = g.Committed
		}
	case binlog.Query, binlog.QueryCompressed:
		return r.where(r.query(out, ev))
	case binlog.ExecuteLoadQuery:
		return r.where(r.query(out, ev))
	case binlog.Load, binlog.NewLoad, binlog.ExecLoad:
		return r.statement(ev, "LOAD DATA")
	case binlog.Incident:
		return r.incident(ev)
	case binlog.Xid, binlog.XAPrepare, binlog.RowsQuery, binlog.AnnotateRows, binlog.Intvar, binlog.Rand, binlog.UserVar,
		binlog.BeginLoadQuery, binlog.AppendBlock, binlog.CreateFile, binlog.DeleteFile,
		binlog.BinlogCheckpoint, binlog.Ignorable, binlog.Heartbeat, binlog.HeartbeatV2, binlog.TransactionContext, binlog.ViewChange:
		// They say nothing about rows; what uses them (a statement) stops by itself.
	case binlog.TransactionPayload:
		if n := len(r.levels); n > 1 || n == 1 && !r.levels[0].prepared && r.levels[0].spool == nil {
			return fmt.Errorf("%w: %s at offset %d: a compressed transaction inside of another", binlog.ErrCorrupt, r.scan.Name(), ev.At)
		}
		return r.where(r.payload(ev))
	default:
		if (ev.Type.Known() || ev.Flags&binlog.FlagIgnorable == 0) && !r.sw.UnknownOff {
			return sdk.Faultf(sdk.CodeUnsupportedEvent, "%s at offset %d: %s event inside of a transaction, which this reader does not know there", r.scan.Name(), ev.At, ev.Type).
				Suggest("use a version of the plugin that knows server %s", r.scan.Format.Server)
		}
	}
	return nil
}

// rows begins with the rows of an event, unless they were rolled back or are not
// wanted.
func (r *Reader) rows(ev *binlog.Event, b *binlog.Bounds) error {
	id, _, err := rows.TableID(ev.Type, &r.scan.Format, ev.Body)
	if err != nil {
		return err
	}
	if id == rows.DummyTable {
		return nil
	}
	t := r.tables.byID[id]
	if t == nil {
		return fmt.Errorf("%w: rows of table id %d, and no table map of it in this transaction", rows.ErrCorrupt, id)
	}
	undone := b.Outcome == binlog.Rollback
	for _, u := range b.Undone {
		undone = undone || ev.At >= u.From && ev.At < u.To
	}
	undone = undone && !r.sw.UndoneOff
	if t.mark != nil && !undone && !r.sw.OriginOff {
		return r.originOf(ev, t.mark)
	}
	if t.skip || r.tx.ignored {
		return nil
	}
	if r.since != 0 && int64(r.tx.bounds.Time) < r.since {
		return nil
	}
	if t.layout == nil {
		return t.err
	}
	if undone {
		keep, err := survives(t)
		if err != nil || !keep {
			return err
		}
	}
	return r.iter.Open(ev.Type, &r.scan.Format, t.layout, ev.Body)
}

// survives says whether a rollback leaves the changes of a table in place, as it
// does where the engine has no transactions.
func survives(t *table) (bool, error) {
	if t.layout.Def == nil {
		return false, sdk.Faultf(sdk.CodeUnsupportedEvent, "changes of %s that were rolled back are in the log, and whether they stayed depends on its engine, which is not known because no CREATE TABLE of it was read", t.name).
			Suggest("begin where its CREATE TABLE is, or exclude the table")
	}
	tx, ok := t.layout.Def.Transactional()
	if !ok {
		return false, sdk.Faultf(sdk.CodeUnsupportedEvent, "changes of %s that were rolled back are in the log, and whether they stayed depends on its engine %s, which this reader does not know", t.name, t.layout.Def.Engine).
			Suggest("exclude the table")
	}
	return !tx, nil
}
