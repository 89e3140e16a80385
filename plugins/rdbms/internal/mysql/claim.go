package mysql

import (
	"context"
	"fmt"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// Claim takes the target: it compares epochs, takes the locks of the writer and of
// its lanes, ending their holders, and then takes the rows in one transaction.
// What was sent by a holder is done or undone when its lock is free, so the
// progress read after that is the resume point.
func (w *Writer) Claim(ctx context.Context, ex sdk.Execution) (sdk.Claimed, error) {
	if err := w.open(); err != nil {
		return sdk.Claimed{}, err
	}
	w.drop()
	s, err := w.connect(ctx, true)
	if err != nil {
		return sdk.Claimed{}, w.fault("connect", err)
	}
	claim, out, err := w.claim(ctx, s, ex)
	if err != nil {
		s.close()
		return sdk.Claimed{}, w.fault("claim", err)
	}
	failpoint.Hit("rdbms.claimed")
	w.mu.Lock()
	w.own, w.session = s, &claim.Session
	w.mu.Unlock()
	if claim.From != nil {
		w.cfg.Log.Info("took over the progress of another task", "task", ex.Task, "writer", ex.Writer, "taskUid", claim.From.TaskUID, "storeUid", claim.From.StoreUID,
			"execution", claim.From.Execution, "epoch", claim.From.Epoch)
	}
	return out, nil
}

func (w *Writer) claim(ctx context.Context, s *session, ex sdk.Execution) (*ledger.Claim, sdk.Claimed, error) {
	var none sdk.Claimed
	srv, err := readServer(ctx, s)
	if err != nil {
		return nil, none, err
	}
	if err := srv.check(&w.cfg); err != nil {
		return nil, none, err
	}
	w.mu.Lock()
	w.srv = srv
	w.mu.Unlock()
	if err := w.books(ctx, s); err != nil {
		return nil, none, err
	}
	// A claim that is not the newest must end nobody.
	lanes := int32(0)
	may := func(ctx context.Context) error {
		rows, err := w.readRows(ctx, s, ex.Task, ex.Writer, false)
		if err != nil {
			return err
		}
		c, err := ledger.Decide(rows, ex, w.cfg.Lanes, w.cfg.Switches)
		if err != nil {
			return err
		}
		lanes = max(lanes, int32(len(rows))-1, c.Session.Lanes)
		return nil
	}
	if err := may(ctx); err != nil {
		return nil, none, err
	}
	name := func(lane int32) string { return lockName(w.addr.database, ex.Task, ex.Writer, lane) }
	lane := sdk.WriterLane
	for {
		for ; lane < lanes; lane++ {
			if w.cfg.Switches.LocksOff {
				continue
			}
			if err := w.lock(ctx, s, name(lane), may); err != nil {
				return nil, none, err
			}
			if lane == sdk.WriterLane {
				if err := w.pinned(ctx, s, name(lane)); err != nil {
					return nil, none, err
				}
			}
		}
		failpoint.Hit("rdbms.claim.begun")
		if err := s.exec(ctx, "START TRANSACTION"); err != nil {
			return nil, none, err
		}
		rows, err := w.readRows(ctx, s, ex.Task, ex.Writer, true)
		if err != nil {
			return nil, none, err
		}
		claim, err := ledger.Decide(rows, ex, w.cfg.Lanes, w.cfg.Switches)
		if err != nil {
			return nil, none, err
		}
		if n := max(int32(len(rows))-1, claim.Session.Lanes); n > lanes {
			// Another claim made more lanes before this one had the lock.
			lanes = n
			if err := s.exec(ctx, "ROLLBACK"); err != nil {
				return nil, none, err
			}
			continue
		}
		out, err := w.take(ctx, s, claim)
		if err != nil {
			return nil, none, err
		}
		failpoint.Hit("rdbms.claim.written")
		if err := s.exec(ctx, "COMMIT"); err != nil {
			return nil, none, err
		}
		for lane := range lanes {
			if w.cfg.Switches.LocksOff {
				break
			}
			if err := s.unlock(ctx, name(lane)); err != nil {
				return nil, none, err
			}
		}
		return claim, out, nil
	}
}

// take writes the claim and reads what is stored, in the open transaction.
func (w *Writer) take(ctx context.Context, s *session, claim *ledger.Claim) (sdk.Claimed, error) {
	x := &claim.Session
	out := sdk.Claimed{Lanes: x.Lanes, Mapping: x.Mapping}
	for i := range claim.Rows {
		if err := w.putRow(ctx, s, &claim.Rows[i]); err != nil {
			return out, err
		}
		if claim.Rows[i].Lane < 0 {
			continue
		}
		p, err := claim.Rows[i].Point()
		if err != nil {
			return out, err
		}
		out.Points = append(out.Points, p)
	}
	of := " WHERE task = " + literal(x.Task) + " AND writer = " + literal(x.Writer)
	for _, lane := range claim.Drop {
		if err := s.exec(ctx, fmt.Sprintf("DELETE FROM %s%s AND lane = %d", w.book(tabProgress), of, lane)); err != nil {
			return out, err
		}
	}
	drop := []string{"DELETE FROM " + w.book(tabState) + of + " AND deleted"}
	if claim.Fresh {
		drop = []string{"DELETE FROM " + w.book(tabState) + of, "DELETE FROM " + w.book(tabDead) + of, "DELETE FROM " + w.book(tabDDL) + of}
	}
	for _, q := range drop {
		if err := s.exec(ctx, q); err != nil {
			return out, err
		}
	}
	return out, w.stored(ctx, s, x.Task, x.Writer, &out)
}
