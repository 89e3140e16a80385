package mysql

import (
	"context"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
)

// The tables of the writer, in the url's database. Lane -1 of datalink_progress is
// the writer's own row. A deleted item of state keeps its row until the next
// claim, so that an older version of it, arriving in another lane, does not bring
// it back. A row of datalink_ddl is a schema change that may have happened.
const (
	tabProgress = "datalink_progress"
	tabState    = "datalink_state"
	tabDead     = "datalink_dead_letters"
	tabDDL      = "datalink_ddl"
)

var bookkeeping = []struct{ name, body string }{
	{tabProgress, `(
	task VARCHAR(128) NOT NULL, task_uid VARCHAR(64) NOT NULL, writer VARCHAR(128) NOT NULL, lane INT NOT NULL,
	store_uid VARCHAR(64) NOT NULL, epoch BIGINT UNSIGNED NOT NULL, execution_id VARCHAR(64) NOT NULL, claim_no BIGINT UNSIGNED NOT NULL,
	batch_no BIGINT UNSIGNED NOT NULL, position LONGTEXT NOT NULL, lanes INT NOT NULL, mapping LONGTEXT NOT NULL, released BOOLEAN NOT NULL,
	updated_at DATETIME(6) NOT NULL, PRIMARY KEY (task, writer, lane))`},
	{tabState, `(
	task VARCHAR(128) NOT NULL, writer VARCHAR(128) NOT NULL, ` + "`key`" + ` VARCHAR(512) NOT NULL, version BIGINT UNSIGNED NOT NULL,
	value LONGBLOB NOT NULL, deleted BOOLEAN NOT NULL, PRIMARY KEY (task, writer, ` + "`key`" + `))`},
	{tabDead, `(
	task VARCHAR(128) NOT NULL, writer VARCHAR(128) NOT NULL, number BIGINT UNSIGNED NOT NULL, table_name TEXT NOT NULL, ` + "`key`" + ` LONGBLOB NOT NULL,
	record LONGBLOB NOT NULL, position LONGTEXT NOT NULL, fault LONGTEXT NOT NULL, at DATETIME(6) NOT NULL, PRIMARY KEY (task, writer, number))`},
	{tabDDL, `(
	task VARCHAR(128) NOT NULL, writer VARCHAR(128) NOT NULL, claim_no BIGINT UNSIGNED NOT NULL, position LONGTEXT NOT NULL, statement LONGTEXT NOT NULL,
	tables LONGTEXT NOT NULL, updated_at DATETIME(6) NOT NULL, PRIMARY KEY (task, writer))`},
}

// books makes the writer's tables where they are missing, and checks that they
// are transactional.
func (w *Writer) books(ctx context.Context, s *session) error {
	if w.cfg.Create == target.Auto {
		if err := w.createDatabase(ctx, s, w.addr.database, func(q string) error { return s.exec(ctx, q) }); err != nil {
			return err
		}
	}
	have, err := w.engines(ctx, s)
	if err != nil {
		return err
	}
	for _, t := range bookkeeping {
		engine, ok := have[t.name]
		if !ok {
			q := "CREATE TABLE IF NOT EXISTS " + w.book(t.name) + " " + t.body + " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
			if err := s.exec(ctx, q); err != nil {
				return err
			}
			continue
		}
		if !strings.EqualFold(engine, "InnoDB") {
			return sdk.Faultf(sdk.CodeSchemaMismatch, "table %s has the engine %s, expected InnoDB: without transactions there is no fence", w.book(t.name), engine).
				Suggest("ALTER TABLE %s ENGINE=InnoDB", w.book(t.name))
		}
	}
	return nil
}

// engines returns the engines of the writer's tables that are there.
func (w *Writer) engines(ctx context.Context, s *session) (map[string]string, error) {
	rows, err := s.query(ctx, "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+literal(w.addr.database)+" AND TABLE_NAME LIKE 'datalink\\_%'")
	if err != nil {
		return nil, err
	}
	have := map[string]string{}
	for _, r := range rows {
		have[strings.ToLower(r[0].text())] = r[1].text()
	}
	return have, nil
}

// book writes the full name of one of the writer's tables.
func (w *Writer) book(name string) string { return quote(w.addr.database) + "." + quote(name) }

const rowColumns = "task, task_uid, writer, lane, store_uid, epoch, execution_id, claim_no, batch_no, position, lanes, mapping, released"

func scanRow(v []value) ledger.Row {
	return ledger.Row{
		Task: v[0].text(), TaskUID: v[1].text(), Writer: v[2].text(), Lane: int32(v[3].number()), StoreUID: v[4].text(), Epoch: v[5].unsigned(),
		Execution: v[6].text(), ClaimNo: v[7].unsigned(), BatchNo: v[8].unsigned(), Position: v[9].text(),
		Lanes: int32(v[10].number()), Mapping: v[11].text(), Released: v[12].number() != 0,
	}
}

// readRows returns the rows of (task, writer) whatever their uid, the writer's own
// first. With lock they stay locked until the transaction ends.
func (w *Writer) readRows(ctx context.Context, s *session, task, writer string, lock bool) ([]ledger.Row, error) {
	q := "SELECT " + rowColumns + " FROM " + w.book(tabProgress) + " WHERE task = " + literal(task) + " AND writer = " + literal(writer) + " ORDER BY lane"
	if lock {
		q += " FOR UPDATE"
	}
	rows, err := s.query(ctx, q)
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
func (w *Writer) readRow(ctx context.Context, s *session, lane int32, lock bool) (*ledger.Row, error) {
	x := w.claimed()
	q := "SELECT " + rowColumns + " FROM " + w.book(tabProgress) + " WHERE task = " + literal(x.Task) + " AND writer = " + literal(x.Writer) + " AND lane = " + strconv.Itoa(int(lane))
	if lock {
		q += " FOR UPDATE"
	}
	rows, err := s.query(ctx, q)
	if number(err) == erNoSuchTable {
		return nil, nil // the target was replaced
	}
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := scanRow(rows[0])
	return &r, nil
}

func (w *Writer) putRow(ctx context.Context, s *session, r *ledger.Row) error {
	released := "0"
	if r.Released {
		released = "1"
	}
	var b []byte
	b = append(append(append(b, "REPLACE INTO "...), w.book(tabProgress)...), " ("+rowColumns+", updated_at) VALUES ("...)
	for _, v := range []string{
		literal(r.Task), literal(r.TaskUID), literal(r.Writer), strconv.Itoa(int(r.Lane)), literal(r.StoreUID), strconv.FormatUint(r.Epoch, 10),
		literal(r.Execution), strconv.FormatUint(r.ClaimNo, 10), strconv.FormatUint(r.BatchNo, 10), literal(r.Position), strconv.Itoa(int(r.Lanes)), literal(r.Mapping), released,
	} {
		b = append(append(b, v...), ", "...)
	}
	return s.exec(ctx, view(append(b, "UTC_TIMESTAMP(6))"...)))
}

// appendFence writes the statement that stores the progress of one lane where the
// claim and the batch before it are still there.
func (w *Writer) appendFence(b []byte, x *ledger.Session, n *sdk.Next) []byte {
	sw := w.cfg.Switches
	b = append(append(append(b, "UPDATE "...), w.book(tabProgress)...), " SET position="...)
	b = appendQuoted(b, ledger.EncodePosition(n.Position))
	b = append(b, ", batch_no="...)
	b = strconv.AppendUint(b, n.BatchNo, 10)
	b = append(b, ", updated_at=UTC_TIMESTAMP(6) WHERE task="...)
	b = append(appendQuoted(b, x.Task), " AND writer="...)
	b = append(appendQuoted(b, x.Writer), " AND lane="...)
	b = strconv.AppendInt(b, int64(n.Lane), 10)
	b = append(b, " AND released=0"...)
	if !sw.EpochOff {
		b = append(b, " AND epoch="...)
		b = strconv.AppendUint(b, x.Epoch, 10)
		b = append(b, " AND execution_id="...)
		b = appendQuoted(b, x.Execution)
	}
	if !sw.EpochOff && !sw.ClaimOff {
		b = append(b, " AND claim_no="...)
		b = strconv.AppendUint(b, x.ClaimNo, 10)
	}
	if !sw.BatchOff {
		b = append(b, " AND batch_no="...)
		b = strconv.AppendUint(b, n.BatchNo-1, 10)
	}
	return b
}
