package mysql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/datalink-go/datalink/sdk"
)

// lockName is the name of the lock of GET_LOCK that guards a lane of a writer. The
// names are those of the whole server, of 64 characters at most, so they are a
// hash of database, task, writer and lane.
func lockName(database, task, writer string, lane int32) string {
	h := sha256.New()
	for _, s := range []string{database, task, writer, strconv.Itoa(int(lane))} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return "dl" + hex.EncodeToString(h.Sum(nil)[:24])
}

// How long a claim waits for the end of one holder before it looks again.
const endWait = 2 * time.Second

// lock takes a lock for the session. It ends the session that holds it, having
// asked may each time: one that has no claim any more must not end its heir.
func (w *Writer) lock(ctx context.Context, s *session, name string, may func(context.Context) error) error {
	deadline := w.cfg.Now().Add(w.cfg.LockWait + w.cfg.NetworkTimeout)
	wait := time.Duration(0)
	for {
		rows, err := s.query(ctx, fmt.Sprintf("SELECT GET_LOCK('%s', %d)", name, int(wait.Seconds())))
		if err != nil {
			return w.fault("lock "+name, err)
		}
		if rows[0][0].number() == 1 {
			s.held = append(s.held, name)
			return nil
		}
		if err := may(ctx); err != nil {
			return err
		}
		rows, err = s.query(ctx, "SELECT IS_USED_LOCK('"+name+"')")
		if err != nil {
			return w.fault("lock "+name, err)
		}
		holder := rows[0][0].unsigned()
		if w.cfg.Now().After(deadline) {
			return sdk.Faultf(sdk.CodeUnavailable, "lock %s at %s: session %d holds it and did not end within %s of KILL", name, w.addr.where(), holder, w.cfg.LockWait+w.cfg.NetworkTimeout).
				Retry().Suggest("look at that session in the target's process list: it may still roll back")
		}
		if holder != 0 && holder != s.id {
			w.cfg.Log.Info("ending the session that holds the lock", "lock", name, "session", holder)
			if err := s.exec(ctx, fmt.Sprintf("KILL %d", holder)); err != nil && number(err) != erNoSuchThread {
				return w.fault(fmt.Sprintf("end of session %d, which holds lock %s", holder, name), err)
			}
		}
		wait = endWait
	}
}

// unlock gives a lock up.
func (s *session) unlock(ctx context.Context, name string) error {
	if err := s.exec(ctx, "DO RELEASE_LOCK('"+name+"')"); err != nil {
		return err
	}
	for i := range s.held {
		if s.held[i] == name {
			s.held = append(s.held[:i], s.held[i+1:]...)
			break
		}
	}
	return nil
}

// pinned checks that what the client takes for one session is one at the server:
// behind a proxy that hands transactions to sessions of its own, a lock guards
// nothing.
func (w *Writer) pinned(ctx context.Context, s *session, name string) error {
	other, err := w.connect(ctx, true)
	if err != nil {
		return err
	}
	defer other.close()
	if err := s.exec(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	if err := s.exec(ctx, "COMMIT"); err != nil {
		return err
	}
	rows, err := s.query(ctx, "SELECT CONNECTION_ID(), IS_USED_LOCK('"+name+"')")
	if err != nil {
		return err
	}
	id, holder := rows[0][0].unsigned(), rows[0][1].unsigned()
	if id == s.id && holder == s.id && other.id != s.id {
		return nil
	}
	return sdk.Faultf(sdk.CodeRefused, "the sessions at %s are not the client's own: session %d became %d, its lock is held by %d, another connection is session %d", w.addr.where(), s.id, id, holder, other.id).
		Suggest("connect to the server itself, or through a proxy that gives each connection a session of its own: transaction pooling voids the fence")
}
