package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
)

// bookkeeping makes the tables of progress, reader state and dead letters. Lane
// -1 of datalink_progress is the writer's own row. A deleted item of state
// keeps its row until the next claim, so that an older version of it, arriving
// in another lane, does not bring it back.
var bookkeeping = []string{
	`CREATE TABLE IF NOT EXISTS datalink_progress (
	task TEXT NOT NULL, task_uid TEXT NOT NULL, writer TEXT NOT NULL, lane INTEGER NOT NULL,
	store_uid TEXT NOT NULL, epoch INTEGER NOT NULL, execution_id TEXT NOT NULL, claim_no INTEGER NOT NULL, batch_no INTEGER NOT NULL,
	position TEXT NOT NULL, lanes INTEGER NOT NULL, mapping TEXT NOT NULL, released INTEGER NOT NULL, updated_at TEXT NOT NULL,
	PRIMARY KEY (task, writer, lane)) WITHOUT ROWID`,
	`CREATE TABLE IF NOT EXISTS datalink_state (
	task TEXT NOT NULL, writer TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL, deleted INTEGER NOT NULL,
	PRIMARY KEY (task, writer, key)) WITHOUT ROWID`,
	`CREATE TABLE IF NOT EXISTS datalink_dead_letters (
	task TEXT NOT NULL, writer TEXT NOT NULL, number INTEGER NOT NULL, table_name TEXT NOT NULL, key BLOB NOT NULL, record BLOB NOT NULL,
	position TEXT NOT NULL, fault TEXT NOT NULL, at TEXT NOT NULL,
	PRIMARY KEY (task, writer, number)) WITHOUT ROWID`,
}

const rowColumns = "task, task_uid, writer, lane, store_uid, epoch, execution_id, claim_no, batch_no, position, lanes, mapping, released"

func scanRow(v []driver.Value) ledger.Row {
	return ledger.Row{
		Task: text(v[0]), TaskUID: text(v[1]), Writer: text(v[2]), Lane: int32(number(v[3])), StoreUID: text(v[4]), Epoch: uint64(number(v[5])),
		Execution: text(v[6]), ClaimNo: uint64(number(v[7])), BatchNo: uint64(number(v[8])), Position: text(v[9]),
		Lanes: int32(number(v[10])), Mapping: text(v[11]), Released: number(v[12]) != 0,
	}
}

// readRows returns the rows of (task, writer) whatever their uid.
func readRows(c *conn, task, writer string) ([]ledger.Row, error) {
	rows, err := c.query(context.Background(), "SELECT "+rowColumns+" FROM datalink_progress WHERE task = ? AND writer = ? ORDER BY lane", task, writer)
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
func readRow(c *conn, task, writer string, lane int32) (*ledger.Row, error) {
	have, err := c.query(context.Background(), "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'datalink_progress'")
	if err != nil || len(have) == 0 {
		return nil, err
	}
	rows, err := c.query(context.Background(), "SELECT "+rowColumns+" FROM datalink_progress WHERE task = ? AND writer = ? AND lane = ?", task, writer, int64(lane))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := scanRow(rows[0])
	return &r, nil
}

func (w *Writer) putRow(c *conn, r *ledger.Row) error {
	_, err := c.change("INSERT INTO datalink_progress ("+rowColumns+", updated_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"+
		" ON CONFLICT (task, writer, lane) DO UPDATE SET task_uid=excluded.task_uid, store_uid=excluded.store_uid, epoch=excluded.epoch,"+
		" execution_id=excluded.execution_id, claim_no=excluded.claim_no, batch_no=excluded.batch_no, position=excluded.position,"+
		" lanes=excluded.lanes, mapping=excluded.mapping, released=excluded.released, updated_at=excluded.updated_at",
		r.Task, r.TaskUID, r.Writer, int64(r.Lane), r.StoreUID, int64(r.Epoch), r.Execution, int64(r.ClaimNo), int64(r.BatchNo), r.Position,
		int64(r.Lanes), r.Mapping, r.Released, w.now())
	return err
}

func (w *Writer) now() string { return w.cfg.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

// fence writes the progress of one lane, conditional on the claim and on the
// batch before it, and returns the count of rows it matched.
func (w *Writer) fence(c *conn, n *sdk.Next) (int64, error) {
	s, sw := w.session, w.cfg.Switches
	where := "task=? AND writer=? AND lane=? AND released=0"
	args := []any{ledger.EncodePosition(n.Position), int64(n.BatchNo), w.now(), s.Task, s.Writer, int64(n.Lane)}
	if !sw.EpochOff {
		where += " AND epoch=? AND execution_id=?"
		args = append(args, int64(s.Epoch), s.Execution)
	}
	if !sw.EpochOff && !sw.ClaimOff {
		where += " AND claim_no=?"
		args = append(args, int64(s.ClaimNo))
	}
	if !sw.BatchOff {
		where += " AND batch_no=?"
		args = append(args, int64(n.BatchNo)-1)
	}
	return c.change("UPDATE datalink_progress SET position=?, batch_no=?, updated_at=? WHERE "+where, args...)
}

func parseTime(s string) time.Time {
	t, _ := time.Parse("2006-01-02T15:04:05.000000Z", s)
	return t
}
