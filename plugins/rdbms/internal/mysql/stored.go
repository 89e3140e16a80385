package mysql

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

const timeLayout = "2006-01-02 15:04:05.000000"

// stored reads reader state and dead letters.
func (w *Writer) stored(ctx context.Context, s *session, task, writer string, out *sdk.Claimed) error {
	of := " WHERE task = " + literal(task) + " AND writer = " + literal(writer)
	rows, err := s.query(ctx, "SELECT `key`, version, value FROM "+w.book(tabState)+of+" AND NOT deleted ORDER BY `key`")
	if err != nil {
		return err
	}
	for _, r := range rows {
		out.State = append(out.State, batch.StateItem{Key: r[0].text(), Version: r[1].unsigned(), Value: r[2]})
	}
	rows, err = s.query(ctx, "SELECT number, table_name, `key`, record, position, fault, at FROM "+w.book(tabDead)+of+" ORDER BY number")
	if err != nil {
		return err
	}
	for _, r := range rows {
		d := sdk.DeadLetter{Number: r[0].unsigned(), Table: r[1].text(), Key: r[2], Record: r[3]}
		d.At, _ = time.Parse(timeLayout, r[6].text())
		if d.Position, err = ledger.DecodePosition(r[4].text()); err != nil {
			return err
		}
		if err := json.Unmarshal(r[5], &d.Fault); err != nil {
			return sdk.Faultf(sdk.CodeInternal, "dead letter %d of task %s, writer %s: its fault %q: %v", d.Number, task, writer, r[5], err)
		}
		out.DeadLetters = append(out.DeadLetters, d)
	}
	return nil
}

// store writes what comes with a progress, in the open transaction.
func (w *Writer) store(ctx context.Context, s *session, x *ledger.Session, n *sdk.Next) error {
	of := literal(x.Task) + ", " + literal(x.Writer) + ", "
	for i := range n.State {
		it := &n.State[i]
		deleted, value := ", 0)", it.Value
		if it.Deleted {
			deleted, value = ", 1)", nil
		}
		q := "INSERT INTO " + w.book(tabState) + " (task, writer, `key`, version, value, deleted) VALUES (" + of + literal(it.Key) + ", " + strconv.FormatUint(it.Version, 10) + ", " + hexText(value) + deleted +
			" ON DUPLICATE KEY UPDATE value = IF(VALUES(version) >= version, VALUES(value), value), deleted = IF(VALUES(version) >= version, VALUES(deleted), deleted), version = GREATEST(version, VALUES(version))"
		if err := s.exec(ctx, q); err != nil {
			return err
		}
	}
	for i := range n.SetAside {
		d := &n.SetAside[i]
		f, err := json.Marshal(&d.Fault)
		if err != nil {
			return err
		}
		q := "REPLACE INTO " + w.book(tabDead) + " (task, writer, number, table_name, `key`, record, position, fault, at) VALUES (" + of + strconv.FormatUint(d.Number, 10) + ", " + literal(d.Table) + ", " +
			hexText(d.Key) + ", " + hexText(d.Record) + ", " + literal(ledger.EncodePosition(d.Position)) + ", " + literal(string(f)) + ", " + literal(d.At.UTC().Format(timeLayout)) + ")"
		if err := s.exec(ctx, q); err != nil {
			return err
		}
	}
	for _, no := range n.Dropped {
		q := "DELETE FROM " + w.book(tabDead) + " WHERE task = " + literal(x.Task) + " AND writer = " + literal(x.Writer) + " AND number = " + strconv.FormatUint(no, 10)
		if err := s.exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func hexText(b []byte) string {
	if len(b) == 0 {
		return "''"
	}
	return "x'" + hex.EncodeToString(b) + "'"
}
