package mysql

import (
	"context"
)

// Release gives up what the task left. The progress rows stay, marked, with a
// claim number above the last: a late writer of the task finds that its claim is
// over, and a new task of the same name may claim.
func (w *Writer) Release(ctx context.Context, taskUID string) error {
	if err := w.open(); err != nil {
		return err
	}
	s, err := w.connect(ctx, true)
	if err != nil {
		return w.fault("connect", err)
	}
	defer s.close()
	have, err := w.engines(ctx, s)
	if err != nil {
		return w.fault("release", err)
	}
	if _, ok := have[tabProgress]; !ok {
		return nil
	}
	texts := []string{"START TRANSACTION"}
	for _, t := range []string{tabState, tabDead, tabDDL} {
		if _, ok := have[t]; ok {
			texts = append(texts, "DELETE FROM "+w.book(t)+" WHERE (task, writer) IN (SELECT task, writer FROM "+w.book(tabProgress)+" WHERE task_uid = "+literal(taskUID)+")")
		}
	}
	texts = append(texts, "UPDATE "+w.book(tabProgress)+" SET released = 1, claim_no = claim_no + 1, position = '', updated_at = UTC_TIMESTAMP(6) WHERE task_uid = "+literal(taskUID)+" AND released = 0", "COMMIT")
	for _, q := range texts {
		if err := s.exec(ctx, q); err != nil {
			return w.fault("release", err)
		}
	}
	return nil
}
