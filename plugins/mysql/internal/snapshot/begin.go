package snapshot

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/gtid"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
)

// view is a consistent snapshot that is open in a session, and where it lies in
// the log. It sees nothing of after high.
type view struct {
	high Place
	// What it sees for certain: all up to high, the transactions of a set, or all up
	// to a place.
	exact    bool
	executed string
	before   Place
	at       time.Time
}

// patience bounds the wait for what was delivered to become visible: a commit
// that takes longer than that is a server in trouble.
const patience = 60 * time.Second

// begin takes a consistent snapshot that sees all that was delivered at cur.
// With exact set it is known what else it sees.
func (s *session) begin(ctx context.Context, cur Place, exact bool) (view, error) {
	if cur.Server != "" && s.id != cur.Server {
		return view{}, sdk.Faultf(sdk.CodeUnavailable, "the stream is read from server %s, this connection leads to %s", cur.Server, s.id).Retry()
	}
	if s.MariaDB {
		return s.beginMariaDB(ctx, cur)
	}
	return s.beginMySQL(ctx, cur, exact)
}

func (s *session) beginMySQL(ctx context.Context, cur Place, exact bool) (view, error) {
	if !s.cfg.Switches.NoWait {
		if err := s.visible(ctx, cur); err != nil {
			return view{}, err
		}
	}
	before, executed, err := s.end(ctx)
	if err == nil && exact && !s.gtids {
		err = s.settled(ctx)
	}
	if err != nil {
		return view{}, err
	}
	if _, err := s.Exec(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"); err != nil {
		return view{}, err
	}
	high, after, err := s.end(ctx)
	if err != nil {
		return view{}, err
	}
	v := view{high: high, at: time.Now()}
	if s.gtids {
		v.executed = executed
	} else {
		v.before = before
	}
	if s.cfg.Switches.Executed {
		v.high = Place{Server: s.id, GTID: after}
	}
	return v, nil
}

// visible waits until the engine has committed what was delivered.
func (s *session) visible(ctx context.Context, cur Place) error {
	if cur.GTID != "" && s.gtids {
		got, err := s.One(ctx, fmt.Sprintf("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %d)", server.Literal(cur.GTID), int(patience.Seconds())))
		if err == nil && got != "0" {
			err = sdk.Faultf(sdk.CodeUnavailable, "server %s has not committed %s within %s, which its log has delivered", s.id, shorten(cur.GTID), patience).Retry()
		}
		return err
	}
	return s.settled(ctx)
}

// settled waits, on a server without GTIDs, until every session that was
// committing has done so.
func (s *session) settled(ctx context.Context) error {
	const committing = "SELECT PROCESSLIST_ID FROM performance_schema.threads WHERE PROCESSLIST_ID IS NOT NULL AND PROCESSLIST_STATE IN " +
		"('waiting for handler commit', 'Waiting for semi-sync ACK from replica', 'Waiting for semi-sync ACK from slave')"
	until := time.Now().Add(patience)
	waiting := map[string]bool{}
	for first := true; ; first = false {
		res, err := s.Query(ctx, committing)
		if err != nil {
			return err
		}
		now := map[string]bool{}
		for _, r := range res.Rows {
			if first || waiting[r.Text(0)] {
				now[r.Text(0)] = true
			}
		}
		if waiting = now; len(waiting) == 0 {
			return nil
		}
		if time.Now().After(until) {
			return sdk.Faultf(sdk.CodeUnavailable, "%d sessions of server %s have been committing for %s", len(waiting), s.id, patience).Retry()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// end returns the end of the binary log and gtid_executed.
func (s *session) end(ctx context.Context) (Place, string, error) {
	sql := "SHOW MASTER STATUS"
	if !s.MariaDB && s.Number >= 80200 {
		sql = "SHOW BINARY LOG STATUS"
	}
	res, err := s.Query(ctx, sql)
	if err != nil {
		return Place{}, "", err
	}
	if len(res.Rows) == 0 {
		return Place{}, "", sdk.Faultf(sdk.CodeUnsupportedEvent, "server %s writes no binary log", s.id).Suggest("set log_bin at the source")
	}
	p := Place{Server: s.id, File: res.Get(0, "File")}
	if p.Offset, err = strconv.ParseInt(res.Get(0, "Position"), 10, 64); err != nil {
		return Place{}, "", fmt.Errorf("%s: position %q", sql, res.Get(0, "Position"))
	}
	return p, res.Get(0, "Executed_Gtid_Set"), nil
}

// beginMariaDB takes snapshots until one sees what was delivered: the log is
// written before the engine commits in its order.
func (s *session) beginMariaDB(ctx context.Context, cur Place) (view, error) {
	until := time.Now().Add(patience)
	for {
		if _, err := s.Exec(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"); err != nil {
			return view{}, err
		}
		v := view{exact: true, at: time.Now()}
		var err error
		if v.high, err = s.own(ctx); err != nil {
			return view{}, err
		}
		if v.high.reached(cur) {
			return v, nil
		}
		if _, err := s.Exec(ctx, "ROLLBACK"); err != nil {
			return view{}, err
		}
		if time.Now().After(until) {
			return view{}, sdk.Faultf(sdk.CodeUnavailable, "server %s shows the state of %s, and its log has delivered up to %s for %s", s.id, v.high, cur, patience).Retry()
		}
		select {
		case <-ctx.Done():
			return view{}, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// own is the place of the snapshot that is open.
func (s *session) own(ctx context.Context) (Place, error) {
	if s.cfg.Switches.BinlogPos {
		p, _, err := s.end(ctx)
		return p, err
	}
	res, err := s.Query(ctx, "SHOW STATUS LIKE 'binlog_snapshot_%'")
	if err != nil {
		return Place{}, err
	}
	p := Place{Server: s.id}
	for _, r := range res.Rows {
		switch r.Text(0) {
		case "Binlog_snapshot_file":
			p.File = r.Text(1)
		case "Binlog_snapshot_position":
			if p.Offset, err = strconv.ParseInt(r.Text(1), 10, 64); err != nil {
				return Place{}, fmt.Errorf("binlog_snapshot_position %q", r.Text(1))
			}
		}
	}
	if p.File == "" {
		return Place{}, sdk.Faultf(sdk.CodeUnsupportedEvent, "server %s gives no binlog_snapshot_file: it writes no binary log", s.id).Suggest("set log_bin at the source")
	}
	return p, nil
}

// sees reports whether the snapshot sees the transactions between two places for
// certain.
func (v *view) sees(from, to Place) bool {
	switch {
	case v.exact:
		return v.high.reached(to)
	case v.before.File != "":
		return v.before.reached(to)
	}
	a, err := gtid.ParseSet(from.GTID)
	if err != nil {
		return false
	}
	b, err := gtid.ParseSet(to.GTID)
	if err != nil {
		return false
	}
	sure, err := gtid.ParseSet(v.executed)
	if err != nil {
		return false
	}
	more := b.Subtract(&a)
	return !more.IsEmpty() && more.Within(&sure)
}

func shorten(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
