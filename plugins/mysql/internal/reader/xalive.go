package reader

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// xaKey begins the keys of state items that say where a prepared transaction lies.
const xaKey = "xa:"

// prepared is where the server's log has the rows of a prepared transaction.
type prepared struct {
	At string `json:"at"` // the position before it
	ID string `json:"id"` // its own id, "" without GTIDs
}

// preparedLive notes the prepared transaction that is next and passes over it: its
// rows are read again, from the server, where it is committed.
func (r *Reader) preparedLive(out *batch.Builder) error {
	p := prepared{At: string(r.mark(nil)), ID: r.tx.id}
	id := ""
	see := func(ev *binlog.Event) error {
		if ev.Type != binlog.XAPrepare {
			return nil
		}
		name, _, err := binlog.AppendXID(nil, ev.Body)
		id = xid(name)
		return err
	}
	var ev binlog.Event
	scan, end := r.scan, r.tx.bounds.End
	if n := len(r.levels); n > 0 {
		scan = r.levels[n-1].scan
	}
	for scan.Offset() < end {
		if err := scan.Next(&ev); err != nil {
			return err
		}
		if err := see(&ev); err != nil {
			return err
		}
	}
	r.dropLevels()
	value, err := json.Marshal(p)
	if err != nil {
		return err
	}
	r.live.prepared[id] = p
	t := &r.tx
	t.active, t.begun, t.ignored, t.ordinal, t.committed = true, false, false, 0, int64(t.bounds.Time)*1e6
	t.startPos = r.markInside(t.startPos[:0])
	to := r.here
	to.off = binlog.EndOf(t.bounds.Next, t.bounds.End)
	t.covers = r.coverLive(t.covers[:0], to)
	r.begin1(out)
	if !r.sw.PreparedOff {
		if err := out.StateItem(&batch.StateItem{Key: xaKey + id, Version: r.live.nextVersion(), Value: value}); err != nil {
			return err
		}
	}
	return r.finish(out)
}

// nextVersion is the version of the next item: above all that were restored, and
// by the clock above those of items that were dropped, which are not restored. A
// place of the log does not do, since the log of another server, or one that was
// begun anew, may stand before it.
func (l *live) nextVersion() uint64 {
	l.version = max(l.version+1, uint64(time.Now().UnixMicro()))
	return l.version
}

// endPrepared drops the note of a transaction that is committed or rolled back.
func (r *Reader) endPrepared(out *batch.Builder, id string) error {
	if r.live == nil {
		return nil
	}
	if _, ok := r.live.prepared[id]; !ok {
		return nil
	}
	delete(r.live.prepared, id)
	r.begin1(out)
	return out.StateItem(&batch.StateItem{Key: xaKey + id, Version: r.live.nextVersion(), Deleted: true})
}

// commitLive reads the rows of a prepared transaction from the server's log again.
func (r *Reader) commitLive(id string) error {
	p, ok := r.live.prepared[id]
	if !ok {
		return sdk.Faultf(sdk.CodePositionPurged, "%s at offset %d: XA COMMIT %s, and it was prepared before this task began", r.scan.Name(), r.ev.At, id).
			Suggest("take the tables anew; or begin before its XA PREPARE")
	}
	from, err := parseSpot(p.At)
	if err != nil {
		return err
	}
	var sp *spool
	var x binlog.Indexer
	format := r.scan.Format
	err = r.view(r.live.ctx, &from, func(scan *binlog.Scanner, next func(*binlog.Event) error) error {
		var ev binlog.Event
		for {
			if err := next(&ev); err != nil {
				return err
			}
			switch ev.Type {
			case binlog.FormatDescription:
				format = scan.Format
				continue
			case binlog.Rotate, binlog.PreviousGTIDs, binlog.MariaGTIDList, binlog.BinlogCheckpoint, binlog.Stop, binlog.Heartbeat, binlog.HeartbeatV2, binlog.StartEncryption:
				if sp == nil {
					continue
				}
			}
			if sp == nil {
				if ev.Type == binlog.GTID || ev.Type == binlog.GTIDTagged || ev.Type == binlog.MariaGTID {
					var g binlog.Group
					if err := binlog.DecodeGroup(&ev, nil, &g); err != nil {
						return err
					}
					if p.ID != "" && string(g.ID) != p.ID {
						return fmt.Errorf("%w: after %s comes %s, expected %s", binlog.ErrCorrupt, p.At, g.ID, p.ID)
					}
				}
				var err error
				if sp, err = newSpool(r.live.gather.dir, ev.At); err != nil {
					return err
				}
			}
			// Offsets are counted anew: MariaDB leaves events out.
			ev.At = sp.from + sp.size
			ev.End = ev.At + int64(ev.Size)
			if _, err := sp.Write(scan.Raw()); err != nil {
				return err
			}
			done, err := x.Step(&ev)
			if err != nil {
				return err
			}
			if done {
				return sp.w.Flush()
			}
		}
	})
	if err == nil && x.Outcome != binlog.Prepared {
		err = fmt.Errorf("%w: what follows %s is no prepared transaction", binlog.ErrCorrupt, p.At)
	}
	if err == io.EOF {
		err = fmt.Errorf("%w: the log ends before the prepared transaction %s", binlog.ErrCut, id)
	}
	if err != nil {
		sp.close()
		return fmt.Errorf("read the prepared transaction %s again: %w", id, err)
	}
	r.levels = append(r.levels, level{
		scan:  binlog.NewScanner(r.scan.Name(), sp.at(sp.from), sp.from, format, int(r.cfg.MaxEvent)),
		until: x.End, bounds: x.Bounds, prepared: true, close: sp.close,
	})
	return nil
}

// restorePrepared takes the notes of prepared transactions from the state.
func (r *Reader) restorePrepared(state []batch.StateItem) error {
	r.live.prepared = map[string]prepared{}
	for i := range state {
		it := &state[i]
		if it.Key == anewKey || strings.HasPrefix(it.Key, xaKey) || strings.HasPrefix(it.Key, doubtKey) {
			r.live.version = max(r.live.version, it.Version)
		}
		if len(it.Key) <= len(xaKey) || it.Key[:len(xaKey)] != xaKey || it.Deleted {
			continue
		}
		var p prepared
		if err := json.Unmarshal(it.Value, &p); err != nil {
			return sdk.Faultf(sdk.CodeInvalidPosition, "reader state %q: %v", it.Key, err)
		}
		r.live.prepared[it.Key[len(xaKey):]] = p
	}
	return nil
}
