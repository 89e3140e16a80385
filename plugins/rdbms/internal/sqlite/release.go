package sqlite

import (
	"context"
	"os"
)

// Release gives up what the task left. The progress rows stay, marked, with a
// claim number above the last: a late writer of the task finds that its claim
// is over, and a new task of the same name may claim.
func (w *Writer) Release(ctx context.Context, taskUID string) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.give()
	if _, err := os.Stat(w.cfg.Path); os.IsNotExist(err) {
		return nil
	}
	c, err := w.begin(ctx, readWrite, "release")
	if err != nil {
		return err
	}
	if err := w.release(c, taskUID); err != nil {
		w.rollback(c)
		return w.fault("release", err)
	}
	if err := c.exec(ctx, "COMMIT"); err != nil {
		w.disconnect()
		return w.fault("release", err)
	}
	return nil
}

func (w *Writer) release(c *conn, taskUID string) error {
	row, err := c.query(context.Background(), "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'datalink_progress'")
	if err != nil || len(row) == 0 {
		return err
	}
	for _, table := range []string{"datalink_state", "datalink_dead_letters"} {
		_, err := c.change("DELETE FROM "+table+" WHERE EXISTS (SELECT 1 FROM datalink_progress p WHERE p.task_uid = ? AND p.task = "+table+".task AND p.writer = "+table+".writer)", taskUID)
		if err != nil {
			return err
		}
	}
	_, err = c.change("UPDATE datalink_progress SET released = 1, claim_no = claim_no + 1, position = '', updated_at = ? WHERE task_uid = ? AND released = 0", w.now(), taskUID)
	return err
}
