package postgres

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// bookkeeping makes the tables of progress, reader state and dead letters. Lane
// -1 of datalink_progress is the writer's own row. A deleted item of state
// keeps its row until the next claim, so that an older version of it, arriving
// in another lane, does not bring it back. Rows of progress are updated all the
// time: room is left beside them, so that no index is touched.
var bookkeeping = []string{
	`CREATE TABLE IF NOT EXISTS $S.datalink_progress (
	task text COLLATE "C" NOT NULL, task_uid text NOT NULL, writer text COLLATE "C" NOT NULL, lane integer NOT NULL,
	store_uid text NOT NULL, epoch bigint NOT NULL, execution_id text NOT NULL, claim_no bigint NOT NULL, batch_no bigint NOT NULL,
	position text NOT NULL, lanes integer NOT NULL, mapping text NOT NULL, released boolean NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (task, writer, lane)) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
	`CREATE TABLE IF NOT EXISTS $S.datalink_state (
	task text COLLATE "C" NOT NULL, writer text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL, value bytea NOT NULL, deleted boolean NOT NULL,
	PRIMARY KEY (task, writer, key))`,
	`CREATE TABLE IF NOT EXISTS $S.datalink_dead_letters (
	task text COLLATE "C" NOT NULL, writer text COLLATE "C" NOT NULL, number bigint NOT NULL, table_name text NOT NULL, key bytea NOT NULL, record bytea NOT NULL,
	position text NOT NULL, fault text NOT NULL, at timestamptz NOT NULL,
	PRIMARY KEY (task, writer, number))`,
}

// own puts the schema of the writer's own tables into a statement.
func (w *Writer) own(sql string) string { return strings.ReplaceAll(sql, "$S", quote(w.cfg.Schema)) }

const rowColumns = "task, task_uid, writer, lane, store_uid, epoch, execution_id, claim_no, batch_no, position, lanes, mapping, released"

func scanRow(r row) ledger.Row {
	return ledger.Row{
		Task: r.text(0), TaskUID: r.text(1), Writer: r.text(2), Lane: int32(r.int(3)), StoreUID: r.text(4), Epoch: uint64(r.int(5)),
		Execution: r.text(6), ClaimNo: uint64(r.int(7)), BatchNo: uint64(r.int(8)), Position: r.text(9),
		Lanes: int32(r.int(10)), Mapping: r.text(11), Released: r.bool(12),
	}
}

// kept reports whether the bookkeeping tables are there.
func (w *Writer) kept(ctx context.Context, s *session) (bool, error) {
	r, err := s.query(ctx, "SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"+
		" WHERE n.nspname = $1 AND c.relname IN ('datalink_progress', 'datalink_state', 'datalink_dead_letters') AND c.relkind = 'r'", w.cfg.Schema)
	if err != nil {
		return false, err
	}
	return r[0].int(0) == 3, nil
}

// keep makes the bookkeeping tables. Two sessions that create one table at a time
// fail in the catalog, so they wait for one another.
func (w *Writer) keep(ctx context.Context, s *session) error {
	have, err := w.kept(ctx, s)
	if err != nil || have {
		return err
	}
	for _, q := range append([]string{"BEGIN", "SELECT pg_advisory_xact_lock(hashtext('datalink bookkeeping'), 0)", "CREATE SCHEMA IF NOT EXISTS $S"}, bookkeeping...) {
		if strings.HasPrefix(q, "CREATE SCHEMA") {
			r, err := s.query(ctx, "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1", w.cfg.Schema)
			if err != nil {
				return err
			}
			if len(r) > 0 {
				continue
			}
		}
		if err := s.run(ctx, w.own(q)); err != nil {
			_ = s.run(ctx, "ROLLBACK")
			return err
		}
	}
	return s.run(ctx, "COMMIT")
}

// readRows returns the rows of (task, writer) whatever their uid, in the order in
// which they are locked: the writer's own first.
func (w *Writer) readRows(ctx context.Context, s *session, task, writer, lock string) ([]ledger.Row, error) {
	rows, err := s.query(ctx, w.own("SELECT "+rowColumns+" FROM $S.datalink_progress WHERE task = $1 AND writer = $2 ORDER BY lane "+lock), task, writer)
	if err != nil {
		return nil, err
	}
	out := make([]ledger.Row, len(rows))
	for i, r := range rows {
		out[i] = scanRow(r)
	}
	return out, nil
}

// readRow returns one row, nil where there is none.
func (w *Writer) readRow(ctx context.Context, s *session, task, writer string, lane int32, lock string) (*ledger.Row, error) {
	rows, err := s.query(ctx, w.own("SELECT "+rowColumns+" FROM $S.datalink_progress WHERE task = $1 AND writer = $2 AND lane = $3 "+lock), task, writer, lane)
	if pgCode(err) == "42P01" {
		return nil, nil // the table itself is gone
	}
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := scanRow(rows[0])
	return &r, nil
}

func (w *Writer) putRow(ctx context.Context, s *session, r *ledger.Row) error {
	_, err := s.exec(ctx, w.own("INSERT INTO $S.datalink_progress ("+rowColumns+", updated_at) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,now())"+
		" ON CONFLICT (task, writer, lane) DO UPDATE SET task_uid=excluded.task_uid, store_uid=excluded.store_uid, epoch=excluded.epoch,"+
		" execution_id=excluded.execution_id, claim_no=excluded.claim_no, batch_no=excluded.batch_no, position=excluded.position,"+
		" lanes=excluded.lanes, mapping=excluded.mapping, released=excluded.released, updated_at=excluded.updated_at"),
		r.Task, r.TaskUID, r.Writer, r.Lane, r.StoreUID, r.Epoch, r.Execution, r.ClaimNo, r.BatchNo, r.Position, r.Lanes, r.Mapping, r.Released)
	return err
}

// fenceText is the conditional write of a lane's progress. That the backend is the
// one that took the lock is part of the condition: behind a proxy that shares
// sessions it is not.
func (w *Writer) fenceText() string {
	sw := w.cfg.Switches
	q := "UPDATE $S.datalink_progress SET position = $1, batch_no = $2, updated_at = now() WHERE task = $3 AND writer = $4 AND lane = $5 AND NOT released" +
		" AND pg_backend_pid() = $6"
	// Every parameter is in the text, so that each has a type, checked or not.
	check := func(off bool, cond string) {
		if off {
			cond = "(" + cond + " OR true)"
		}
		q += " AND " + cond
	}
	check(sw.EpochOff, "epoch = $7 AND execution_id = $8")
	check(sw.EpochOff || sw.ClaimOff, "claim_no = $9")
	check(sw.BatchOff, "batch_no = $10")
	return w.own(q)
}

func (w *Writer) fenceArgs(c *ledger.Session, n *sdk.Next, pid uint32) []any {
	return []any{
		ledger.EncodePosition(n.Position), n.BatchNo, c.Task, c.Writer, n.Lane, int64(pid), c.Epoch, c.Execution, c.ClaimNo, n.BatchNo - 1,
	}
}

func (w *Writer) readState(ctx context.Context, s *session, task, writer string) ([]batch.StateItem, error) {
	rows, err := s.query(ctx, w.own("SELECT key, version, value FROM $S.datalink_state WHERE task = $1 AND writer = $2 AND NOT deleted ORDER BY key"), task, writer)
	if err != nil {
		return nil, err
	}
	var out []batch.StateItem
	for _, r := range rows {
		out = append(out, batch.StateItem{Key: r.text(0), Version: uint64(r.int(1)), Value: r.bytes(2)})
	}
	return out, nil
}

func (w *Writer) putState(ctx context.Context, s *session, c *ledger.Session, items []batch.StateItem) error {
	for i := range items {
		it := &items[i]
		value := it.Value
		if it.Deleted {
			value = nil
		}
		_, err := s.exec(ctx, w.own("INSERT INTO $S.datalink_state AS st (task, writer, key, version, value, deleted) VALUES ($1,$2,$3,$4,$5,$6)"+
			" ON CONFLICT (task, writer, key) DO UPDATE SET version=excluded.version, value=excluded.value, deleted=excluded.deleted WHERE excluded.version >= st.version"),
			c.Task, c.Writer, it.Key, it.Version, value, it.Deleted)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) readDeadLetters(ctx context.Context, s *session, task, writer string) ([]sdk.DeadLetter, error) {
	rows, err := s.query(ctx, w.own("SELECT number, table_name, key, record, position, fault, (extract(epoch FROM at) * 1000000)::bigint"+
		" FROM $S.datalink_dead_letters WHERE task = $1 AND writer = $2 ORDER BY number"), task, writer)
	if err != nil {
		return nil, err
	}
	var out []sdk.DeadLetter
	for _, r := range rows {
		d := sdk.DeadLetter{Number: uint64(r.int(0)), Table: r.text(1), Key: r.bytes(2), Record: r.bytes(3), At: time.UnixMicro(r.int(6)).UTC()}
		if d.Position, err = ledger.DecodePosition(r.text(4)); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(r[5], &d.Fault); err != nil {
			return nil, sdk.Faultf(sdk.CodeInternal, "dead letter %d of task %s, writer %s: its fault %q: %v", d.Number, task, writer, r.text(5), err)
		}
		out = append(out, d)
	}
	return out, nil
}

func (w *Writer) putDeadLetters(ctx context.Context, s *session, c *ledger.Session, n *sdk.Next) error {
	for i := range n.SetAside {
		d := &n.SetAside[i]
		f, err := json.Marshal(&d.Fault)
		if err != nil {
			return err
		}
		_, err = s.exec(ctx, w.own("INSERT INTO $S.datalink_dead_letters (task, writer, number, table_name, key, record, position, fault, at)"+
			" VALUES ($1,$2,$3,$4,$5,$6,$7,$8,'epoch'::timestamptz + $9 * interval '1 microsecond')"+
			" ON CONFLICT (task, writer, number) DO UPDATE SET table_name=excluded.table_name, key=excluded.key, record=excluded.record,"+
			" position=excluded.position, fault=excluded.fault, at=excluded.at"),
			c.Task, c.Writer, d.Number, d.Table, d.Key, d.Record, ledger.EncodePosition(d.Position), string(f), max(d.At.UnixMicro(), 0))
		if err != nil {
			return err
		}
	}
	for _, no := range n.Dropped {
		if _, err := s.exec(ctx, w.own("DELETE FROM $S.datalink_dead_letters WHERE task = $1 AND writer = $2 AND number = $3"), c.Task, c.Writer, no); err != nil {
			return err
		}
	}
	return nil
}
