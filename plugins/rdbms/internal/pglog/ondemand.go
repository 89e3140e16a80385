package pglog

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgscan"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

var _ sdk.Snapshotter = (*Reader)(nil)

// asked are tables that are to be taken anew while the stream runs.
type asked struct {
	mu      sync.Mutex
	news    []*ask // not seen by the goroutine of Next yet
	waiting []*ask // stored or on the way to it; the goroutine's own
	status  []sdk.TableSnapshot
	low     place // durable
	tried   time.Time
}

type ask struct {
	tables  []*pgcat.Table
	horizon uint64
	at      place // where it is stored
	placed  chan struct{}
}

// Snapshot takes tables anew. The stream goes on until a snapshot can be had that
// shows everything that was delivered, then it is held while the rows are read.
func (r *Reader) Snapshot(ctx context.Context, q sdk.SnapshotRequest) (sdk.SnapshotStatus, error) {
	if q.Pause || q.Resume {
		return sdk.SnapshotStatus{}, sdk.Faultf(sdk.CodeUnimplemented, "snapshots of PostgreSQL cannot be paused: the stream waits for them").Suggest("pause the task; it goes on where it stopped")
	}
	if len(q.Tables) == 0 {
		return r.snapshotStatus(nil), nil
	}
	f, err := scan.NewFilter(q.Tables)
	if err != nil {
		return sdk.SnapshotStatus{}, sdk.Faultf(sdk.CodeInvalidConfig, "tables: %v", err)
	}
	c, err := r.srv.Connect(ctx)
	if err != nil {
		return sdk.SnapshotStatus{}, err
	}
	defer pgcat.Close(c)
	a := &ask{placed: make(chan struct{})}
	a.tables, err = pgcat.NewCatalog().List(ctx, c, func(ns, t string) bool { return f.Wants(ns, t) && r.filter.Wants(ns, t) })
	var rows [][][]byte
	if err == nil {
		rows, err = pgcat.Query(ctx, c, "SELECT pg_snapshot_xmax(pg_current_snapshot())")
	}
	if err == nil {
		a.horizon, err = strconv.ParseUint(string(rows[0][0]), 10, 64)
	}
	if err != nil {
		return sdk.SnapshotStatus{}, r.srv.Fault("look for the tables", err)
	}
	if len(a.tables) == 0 {
		return sdk.SnapshotStatus{}, sdk.Faultf(sdk.CodeInvalidConfig, "no table that the task reads matches %v", q.Tables).Suggest("names are schema.table")
	}
	r.asked.mu.Lock()
	r.asked.news = append(r.asked.news, a)
	r.asked.mu.Unlock()
	select {
	case <-a.placed:
	case <-ctx.Done():
		return sdk.SnapshotStatus{}, ctx.Err()
	}
	// Accepted is what a restart does not lose.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		r.asked.mu.Lock()
		stored := r.asked.low.compare(a.at) >= 0
		r.asked.mu.Unlock()
		if stored {
			return r.snapshotStatus(a.tables), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return sdk.SnapshotStatus{}, ctx.Err()
		}
	}
}

func (r *Reader) snapshotStatus(accepted []*pgcat.Table) sdk.SnapshotStatus {
	r.asked.mu.Lock()
	defer r.asked.mu.Unlock()
	s := sdk.SnapshotStatus{Tables: append([]sdk.TableSnapshot(nil), r.asked.status...)}
	for _, t := range accepted {
		s.Accepted = append(s.Accepted, t.Full())
	}
	return s
}

// note keeps how far the snapshot of a table is.
func (a *asked) note(table, phase string, rows int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.status {
		if s := &a.status[i]; s.Table == table {
			if s.Phase = phase; phase == "pending" {
				s.Rows = 0
			}
			s.Rows += uint64(rows)
			return
		}
	}
	a.status = append(a.status, sdk.TableSnapshot{Table: table, Phase: phase, Rows: uint64(rows)})
}

// newlyAsked reports whether Snapshot has asked for something.
func (a *asked) newlyAsked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.news) > 0
}

// accept stores what was asked for, between two transactions.
func (r *Reader) accept(out *batch.Builder) error {
	r.asked.mu.Lock()
	news := r.asked.news
	r.asked.news = nil
	r.asked.mu.Unlock()
	for _, a := range news {
		p := r.here
		p.step++
		if err := out.BeginTx(batch.Tx{Begins: true, Start: p.append(nil), ID: "snapshot asked for"}); err != nil {
			return err
		}
		for _, t := range a.tables {
			it := &tableItem{Namespace: t.Namespace, Table: t.Name, Columns: columnsOf(t), version: versionOf(r.items[t.OID])}
			if known := r.items[t.OID]; known != nil {
				// The layout that the stream has come to is not the catalog's of now.
				it.Columns = known.Columns
			}
			item, err := r.stateItem(t.OID, it)
			if err != nil {
				return err
			}
			if err := out.StateItem(item); err != nil {
				return err
			}
			r.asked.note(t.Full(), "pending", 0)
		}
		r.here.step = (p.step + 1) &^ 1
		if err := out.EndTx(true, nil, r.here.append(nil)); err != nil {
			return err
		}
		a.at = r.here
		close(a.placed)
		r.asked.waiting = append(r.asked.waiting, a)
	}
	return nil
}

// askedEvery is how often a snapshot is tried for.
const askedEvery = 300 * time.Millisecond

var errNotYet = errors.New("not yet")

// begun takes the snapshot for what was asked for, when one can be had.
func (r *Reader) begun(ctx context.Context) error {
	r.asked.tried = time.Now()
	a := r.asked.waiting[0]
	r.handed.publish(r.here)
	_, xids := r.handed.take()
	ready := func(text string) bool {
		v, err := parseVisible(text)
		if err != nil || older(v.min, uint32(a.horizon)) {
			return false
		}
		for _, x := range xids {
			if !v.has(x) {
				return false
			}
		}
		return true
	}
	src, text, err := pgscan.Begin(ctx, r.srv, ready, func(context.Context) error { return errNotYet })
	if errors.Is(err, errNotYet) {
		return nil
	}
	if err != nil {
		return err
	}
	rows, err := r.ask(ctx, "SELECT pg_current_wal_insert_lsn()")
	if err != nil {
		src.Close()
		return err
	}
	until, err := parseLSN(string(rows[0][0]))
	if err != nil {
		src.Close()
		return err
	}
	r.asked.waiting = r.asked.waiting[1:]
	for _, t := range a.tables {
		delete(r.windows, t.OID)
		r.items[t.OID].restart()
	}
	r.snap = handover{tables: a.tables, at: r.here.lsn, step: r.here.step, src: src, snapshot: text, until: until}
	return nil
}
