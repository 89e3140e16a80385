package postgres

import (
	"context"
	"fmt"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// tries of a claim whose session another claim ended.
const claimTries = 5

// Claim takes the target: the progress it returns is the resume point, since no
// session is left that could write after it was read.
func (w *Writer) Claim(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	w.inForce(nil)
	w.plans.forget()
	if err := w.dropAll(ctx); err != nil {
		return sdk.Claimed{}, err
	}
	for try := 1; ; try++ {
		claim, out, err := w.claimOnce(ctx, ex)
		if err == nil {
			w.inForce(&claim.Session)
			if claim.From != nil {
				w.cfg.Log.Info("took over the progress of another task", "task", ex.Task, "writer", ex.Writer, "taskUid", claim.From.TaskUID, "storeUid", claim.From.StoreUID,
					"execution", claim.From.Execution, "epoch", claim.From.Epoch)
			}
			return out, nil
		}
		if f := sdk.AsFault(err); !f.Retryable || f.Code != sdk.CodeUnavailable || try == claimTries || ctx.Err() != nil {
			return sdk.Claimed{}, err
		}
		w.cfg.Log.Warn("claim is tried again", "try", try, "error", err)
	}
}

func (w *Writer) claimOnce(ctx context.Context, ex sdk.Execution) (*ledger.Claim, sdk.Claimed, error) {
	var none sdk.Claimed
	s, err := w.dial(ctx)
	if err != nil {
		return nil, none, err
	}
	defer s.close()
	if err := w.direct(ctx, s); err != nil {
		return nil, none, err
	}
	if err := w.keep(ctx, s); err != nil {
		return nil, none, w.fault("bookkeeping tables", err)
	}
	// A claim that will be refused ends no session.
	rows, err := w.readRows(ctx, s, ex.Task, ex.Writer, "")
	if err != nil {
		return nil, none, w.fault("claim", err)
	}
	early, err := ledger.Decide(rows, ex, w.cfg.Lanes, w.cfg.Switches)
	if err != nil {
		return nil, none, err
	}
	lanes := early.Session.Lanes
	for i := range rows {
		lanes = max(lanes, rows[i].Lane+1)
	}
	for lane := sdk.WriterLane; lane < lanes && !w.cfg.Switches.LocksOff; lane++ {
		what := fmt.Sprintf("task %s, writer %s, lane %d", ex.Task, ex.Writer, lane)
		if err := w.lock(ctx, s, w.lockKey(ex.Task, ex.Writer, lane), what, func() error { return nil }); err != nil {
			return nil, none, err
		}
	}
	failpoint.Hit("rdbms.claim.begun")
	if err := s.run(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"); err != nil {
		return nil, none, w.fault("claim", err)
	}
	claim, out, err := w.takeRows(ctx, s, ex)
	if err != nil {
		return nil, none, w.fault("claim", err)
	}
	failpoint.Hit("rdbms.claim.written")
	if err := commit(ctx, s); err != nil {
		return nil, none, w.fault("claim", err)
	}
	failpoint.Hit("rdbms.claimed")
	return claim, out, nil
}

// takeRows is the claim's transaction.
func (w *Writer) takeRows(ctx context.Context, s *session, ex sdk.Execution) (*ledger.Claim, sdk.Claimed, error) {
	var out sdk.Claimed
	rows, err := w.readRows(ctx, s, ex.Task, ex.Writer, "FOR UPDATE")
	if err != nil {
		return nil, out, err
	}
	claim, err := ledger.Decide(rows, ex, w.cfg.Lanes, w.cfg.Switches)
	if err != nil {
		return nil, out, err
	}
	out.Lanes, out.Mapping = claim.Session.Lanes, claim.Session.Mapping
	for i := range claim.Rows {
		if err := w.putRow(ctx, s, &claim.Rows[i]); err != nil {
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
		if _, err := s.exec(ctx, w.own("DELETE FROM $S.datalink_progress WHERE task = $1 AND writer = $2 AND lane = $3"), ex.Task, ex.Writer, lane); err != nil {
			return nil, out, err
		}
	}
	drop := "DELETE FROM $S.datalink_state WHERE task = $1 AND writer = $2 AND deleted"
	if claim.Fresh {
		drop = "DELETE FROM $S.datalink_state WHERE task = $1 AND writer = $2"
		if _, err := s.exec(ctx, w.own("DELETE FROM $S.datalink_dead_letters WHERE task = $1 AND writer = $2"), ex.Task, ex.Writer); err != nil {
			return nil, out, err
		}
	}
	if _, err := s.exec(ctx, w.own(drop), ex.Task, ex.Writer); err != nil {
		return nil, out, err
	}
	if out.State, err = w.readState(ctx, s, ex.Task, ex.Writer); err != nil {
		return nil, out, err
	}
	out.DeadLetters, err = w.readDeadLetters(ctx, s, ex.Task, ex.Writer)
	return claim, out, err
}

// Look returns the progress that a claim of the execution would return, and
// takes nothing.
func (w *Writer) Look(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	var out sdk.Claimed
	s, err := w.dial(ctx)
	if err != nil {
		return out, err
	}
	defer s.close()
	var rows []ledger.Row
	have, err := w.kept(ctx, s)
	if err != nil {
		return out, w.fault("look", err)
	}
	if have {
		if rows, err = w.readRows(ctx, s, ex.Task, ex.Writer, ""); err != nil {
			return out, w.fault("look", err)
		}
	}
	claim, err := ledger.Decide(rows, ex, w.cfg.Lanes, w.cfg.Switches)
	if err != nil {
		return out, err
	}
	out.Lanes, out.Mapping = claim.Session.Lanes, claim.Session.Mapping
	for i := range claim.Rows {
		if claim.Rows[i].Lane < 0 {
			continue
		}
		p, err := claim.Rows[i].Point()
		if err != nil {
			return out, err
		}
		out.Points = append(out.Points, p)
	}
	if have && !claim.Fresh {
		if out.State, err = w.readState(ctx, s, ex.Task, ex.Writer); err != nil {
			return out, w.fault("look", err)
		}
		if out.DeadLetters, err = w.readDeadLetters(ctx, s, ex.Task, ex.Writer); err != nil {
			return out, w.fault("look", err)
		}
	}
	return out, nil
}

// commit sends COMMIT and reads its answer: a server whose transaction had ended in
// an error answers ROLLBACK, which is no error to it.
func commit(ctx context.Context, s *session) error {
	results, err := s.pc.Exec(ctx, "COMMIT").ReadAll()
	if err != nil {
		return err
	}
	if tag := results[len(results)-1].CommandTag.String(); tag != "COMMIT" {
		return sdk.Faultf(sdk.CodeUnavailable, "COMMIT was answered %q: the transaction had ended in an error", tag).Retry()
	}
	return nil
}
