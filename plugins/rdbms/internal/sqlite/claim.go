package sqlite

import (
	"context"
	"encoding/json"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// Claim takes the target in one transaction that locks the file: the progress
// it returns is the resume point, since nobody can write after it was read.
func (w *Writer) Claim(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	if err := w.take(ctx); err != nil {
		return sdk.Claimed{}, err
	}
	defer w.give()
	w.session = nil
	w.forget()
	c, err := w.begin(ctx, create, "claim")
	if err != nil {
		return sdk.Claimed{}, err
	}
	failpoint.Hit("rdbms.claim.begun")
	claim, out, err := w.claim(c, ex)
	if err != nil {
		w.rollback(c)
		return sdk.Claimed{}, w.fault("claim", err)
	}
	failpoint.Hit("rdbms.claim.written")
	if err := c.exec(ctx, "COMMIT"); err != nil {
		w.disconnect()
		return sdk.Claimed{}, w.fault("claim", err)
	}
	failpoint.Hit("rdbms.claimed")
	w.session = &claim.Session
	if claim.From != nil {
		w.cfg.Log.Info("took over the progress of another task", "task", ex.Task, "writer", ex.Writer, "taskUid", claim.From.TaskUID, "storeUid", claim.From.StoreUID,
			"execution", claim.From.Execution, "epoch", claim.From.Epoch)
	}
	return out, nil
}

func (w *Writer) claim(c *conn, ex sdk.Execution) (*ledger.Claim, sdk.Claimed, error) {
	var out sdk.Claimed
	for _, q := range bookkeeping {
		if _, err := c.change(q); err != nil {
			return nil, out, err
		}
	}
	rows, err := readRows(c, ex.Task, ex.Writer)
	if err != nil {
		return nil, out, err
	}
	claim, err := ledger.Decide(rows, ex, w.cfg.Lanes, w.cfg.Switches)
	if err != nil {
		return nil, out, err
	}
	out.Lanes, out.Mapping = claim.Session.Lanes, claim.Session.Mapping
	for i := range claim.Rows {
		if err := w.putRow(c, &claim.Rows[i]); err != nil {
			return nil, out, err
		}
		if claim.Rows[i].Lane < 0 {
			continue
		}
		p, err := claim.Rows[i].Point()
		if err != nil {
			return nil, out, err
		}
		out.Points = append(out.Points, p)
	}
	for _, lane := range claim.Drop {
		if _, err := c.change("DELETE FROM datalink_progress WHERE task=? AND writer=? AND lane=?", ex.Task, ex.Writer, int64(lane)); err != nil {
			return nil, out, err
		}
	}
	drop := "DELETE FROM datalink_state WHERE task=? AND writer=? AND deleted"
	if claim.Fresh {
		drop = "DELETE FROM datalink_state WHERE task=? AND writer=?"
		if _, err := c.change("DELETE FROM datalink_dead_letters WHERE task=? AND writer=?", ex.Task, ex.Writer); err != nil {
			return nil, out, err
		}
	}
	if _, err := c.change(drop, ex.Task, ex.Writer); err != nil {
		return nil, out, err
	}
	if out.State, err = readState(c, ex.Task, ex.Writer); err != nil {
		return nil, out, err
	}
	out.DeadLetters, err = readDeadLetters(c, ex.Task, ex.Writer)
	return claim, out, err
}

func readState(c *conn, task, writer string) ([]batch.StateItem, error) {
	rows, err := c.query(context.Background(), "SELECT key, version, value FROM datalink_state WHERE task=? AND writer=? ORDER BY key", task, writer)
	if err != nil {
		return nil, err
	}
	var out []batch.StateItem
	for _, r := range rows {
		value, _ := r[2].([]byte)
		out = append(out, batch.StateItem{Key: text(r[0]), Version: uint64(number(r[1])), Value: value})
	}
	return out, nil
}

func (w *Writer) putState(c *conn, items []batch.StateItem) error {
	for i := range items {
		it := &items[i]
		value := it.Value
		if value == nil || it.Deleted {
			value = []byte{}
		}
		_, err := c.change("INSERT INTO datalink_state (task, writer, key, version, value, deleted) VALUES (?,?,?,?,?,?)"+
			" ON CONFLICT (task, writer, key) DO UPDATE SET version=excluded.version, value=excluded.value, deleted=excluded.deleted WHERE excluded.version >= version",
			w.session.Task, w.session.Writer, it.Key, int64(it.Version), value, it.Deleted)
		if err != nil {
			return err
		}
	}
	return nil
}

func readDeadLetters(c *conn, task, writer string) ([]sdk.DeadLetter, error) {
	rows, err := c.query(context.Background(),
		"SELECT number, table_name, key, record, position, fault, at FROM datalink_dead_letters WHERE task=? AND writer=? ORDER BY number", task, writer)
	if err != nil {
		return nil, err
	}
	var out []sdk.DeadLetter
	for _, r := range rows {
		d := sdk.DeadLetter{Number: uint64(number(r[0])), Table: text(r[1]), At: parseTime(text(r[6]))}
		d.Key, _ = r[2].([]byte)
		d.Record, _ = r[3].([]byte)
		if d.Position, err = ledger.DecodePosition(text(r[4])); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text(r[5])), &d.Fault); err != nil {
			return nil, sdk.Faultf(sdk.CodeInternal, "dead letter %d of task %s, writer %s: its fault %q: %v", d.Number, task, writer, text(r[5]), err)
		}
		out = append(out, d)
	}
	return out, nil
}

func (w *Writer) putDeadLetters(c *conn, n *sdk.Next) error {
	s := w.session
	for i := range n.SetAside {
		d := &n.SetAside[i]
		f, err := json.Marshal(&d.Fault)
		if err != nil {
			return err
		}
		_, err = c.change("INSERT INTO datalink_dead_letters (task, writer, number, table_name, key, record, position, fault, at) VALUES (?,?,?,?,?,?,?,?,?)"+
			" ON CONFLICT (task, writer, number) DO UPDATE SET table_name=excluded.table_name, key=excluded.key, record=excluded.record,"+
			" position=excluded.position, fault=excluded.fault, at=excluded.at",
			s.Task, s.Writer, int64(d.Number), d.Table, append([]byte{}, d.Key...), append([]byte{}, d.Record...), ledger.EncodePosition(d.Position), string(f),
			d.At.UTC().Format("2006-01-02T15:04:05.000000Z"))
		if err != nil {
			return err
		}
	}
	for _, no := range n.Dropped {
		if _, err := c.change("DELETE FROM datalink_dead_letters WHERE task=? AND writer=? AND number=?", s.Task, s.Writer, int64(no)); err != nil {
			return err
		}
	}
	return nil
}
