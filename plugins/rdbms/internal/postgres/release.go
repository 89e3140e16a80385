package postgres

import (
	"context"
)

// Release gives up what the task left. The progress rows stay, marked, with a
// claim number above the last: a late writer of the task finds that its claim
// is over, and a new task of the same name may claim.
func (w *Writer) Release(ctx context.Context, taskUID string) error {
	s, err := w.dial(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	have, err := w.kept(ctx, s)
	if err != nil {
		return w.fault("release", err)
	}
	if !have {
		return nil
	}
	if err := w.release(ctx, s, taskUID); err != nil {
		return w.fault("release", err)
	}
	return nil
}

func (w *Writer) release(ctx context.Context, s *session, taskUID string) error {
	if err := s.run(ctx, begin); err != nil {
		return err
	}
	for _, q := range []string{
		"SELECT 1 FROM $S.datalink_progress WHERE task_uid = $1 ORDER BY task, writer, lane FOR UPDATE",
		"DELETE FROM $S.datalink_state st USING $S.datalink_progress p WHERE p.task_uid = $1 AND p.task = st.task AND p.writer = st.writer",
		"DELETE FROM $S.datalink_dead_letters d USING $S.datalink_progress p WHERE p.task_uid = $1 AND p.task = d.task AND p.writer = d.writer",
		"UPDATE $S.datalink_progress SET released = true, claim_no = claim_no + 1, position = '', updated_at = now() WHERE task_uid = $1 AND NOT released",
	} {
		if _, err := s.exec(ctx, w.own(q), taskUID); err != nil {
			return err
		}
	}
	return commit(ctx, s)
}
