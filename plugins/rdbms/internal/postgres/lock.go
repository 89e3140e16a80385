package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/sdk"
)

// lockKey is the key of a lane's advisory lock. PostgreSQL keeps such locks apart
// by database.
func (w *Writer) lockKey(task, writer string, lane int32) int64 {
	h := sha256.Sum256(fmt.Appendf(nil, "datalink\x00%s\x00%s\x00%s\x00%d", w.cfg.Schema, task, writer, lane))
	return int64(binary.BigEndian.Uint64(h[:]))
}

// holders are the backends that hold or wait for an advisory lock of the database.
const holders = `SELECT l.pid, coalesce(a.client_addr::text, ''), coalesce(a.client_port::text, ''), coalesce(a.backend_start::text, '')
FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
 AND l.classid::bigint = $1 AND l.objid::bigint = $2 AND l.objsubid = 1 AND l.granted AND l.pid <> pg_backend_pid()`

// one wait for a lock before its holders are looked at again.
const lockStep = 500 * time.Millisecond

// lock takes an advisory lock for the session and ends the sessions that hold it.
// May is asked before a session is ended.
func (w *Writer) lock(ctx context.Context, s *session, key int64, what string, may func() error) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.ClaimTimeout)
	defer cancel()
	step := false
	defer func() {
		if step && !s.closed() {
			_, _ = s.exec(ctx, "SELECT set_config('lock_timeout', $1, false)", strconv.FormatInt(w.cfg.LockTimeout.Milliseconds(), 10))
		}
	}()
	who := "nobody"
	for {
		got, err := s.query(ctx, "SELECT pg_try_advisory_lock($1::bigint)", key)
		if err != nil {
			return w.waited(ctx, what, who, err)
		}
		if got[0].bool(0) {
			return nil
		}
		if err := may(); err != nil {
			return err
		}
		rows, err := s.query(ctx, holders, int64(uint64(key)>>32), int64(uint64(key)&0xffffffff))
		if err != nil {
			return w.waited(ctx, what, who, err)
		}
		for _, r := range rows {
			who = fmt.Sprintf("backend %s of client %s:%s since %s", r.text(0), r.text(1), r.text(2), r.text(3))
			w.cfg.Log.Info("ending a session that holds a lock of this writer", "lock", what, "holder", who)
			if _, err := s.query(ctx, "SELECT pg_terminate_backend($1::int)", r.int(0)); err != nil {
				return w.fault("end "+who+", which holds the lock of "+what, err)
			}
		}
		if !step {
			step = true
			if _, err := s.exec(ctx, "SELECT set_config('lock_timeout', $1, false)", strconv.FormatInt(lockStep.Milliseconds(), 10)); err != nil {
				return w.waited(ctx, what, who, err)
			}
		}
		_, err = s.query(ctx, "SELECT pg_advisory_lock($1::bigint)", key)
		if err == nil {
			return nil
		}
		if pgCode(err) != pgLockTimeout {
			return w.waited(ctx, what, who, err)
		}
	}
}

func (w *Writer) waited(ctx context.Context, what, who string, err error) error {
	if ctx.Err() == context.DeadlineExceeded {
		return sdk.Faultf(sdk.CodeUnavailable, "lock of %s in %s: not free after %s, held by %s", what, w.place(), w.cfg.ClaimTimeout, who).
			Retry().Suggest("end that session, or raise claimTimeout")
	}
	return w.fault("lock of "+what, err)
}

// lockLane takes the lock of a lane for a session of a claim in force. Where another
// session holds it the claim is looked at first: a late writer ends nobody.
func (w *Writer) lockLane(ctx context.Context, s *session, claim *ledger.Session, no int32) error {
	what := fmt.Sprintf("task %s, writer %s, lane %d", claim.Task, claim.Writer, no)
	return w.lock(ctx, s, w.lockKey(claim.Task, claim.Writer, no), what, func() error {
		r, err := w.readRow(ctx, s, claim.Task, claim.Writer, no, "")
		if err != nil {
			return w.fault("progress", err)
		}
		if claim.Holds(r) {
			return nil
		}
		return claim.Refusal(no, 0, r)
	})
}

// direct refuses proxies that share sessions among clients. One that passes on
// whole sessions names another backend than the one that answers, too, so two
// sessions are looked at: while the first holds a lock, the second must be of
// another backend, and the first must still be its own.
func (w *Writer) direct(ctx context.Context, s *session) error {
	if !s.proxied {
		return nil
	}
	other, err := w.dial(ctx)
	if err != nil {
		return err
	}
	defer other.close()
	if err := other.run(ctx, "BEGIN"); err != nil {
		return w.fault("connect", err)
	}
	inside, err := other.pc.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return w.fault("connect", err)
	}
	mine, err := s.pc.Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return w.fault("connect", err)
	}
	if pid := string(mine[0].Rows[0][0]); pid == string(inside[0].Rows[0][0]) || pid != strconv.Itoa(int(s.pid)) {
		return pooled(w.place())
	}
	return nil
}
