package snapshot

import (
	"context"
	"fmt"
	"math"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
)

// session is a connection that reads rows.
type session struct {
	*server.Conn
	cfg    *Config
	id     string // of the server
	format binlog.Format
	gtids  bool // the server has GTIDs that can be waited for
	base   string
	coll   string // collation of the server
}

// dial opens a session in which values mean what they mean in the log.
func dial(ctx context.Context, src Source, cfg *Config) (*session, error) {
	c, err := src.Dial(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{Conn: c, cfg: cfg, format: binlog.Format{MariaDB: c.MariaDB, Server: c.Version}}
	if err := s.prepare(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("prepare a connection for the snapshot: %w", err)
	}
	return s, nil
}

func (s *session) prepare(ctx context.Context) error {
	if err := s.Pin(ctx, true); err != nil {
		return err
	}
	// A receiver that is slow for long must not lose its place in the rows.
	set := "SET SESSION net_write_timeout = 3600, net_read_timeout = 3600"
	if s.MariaDB {
		set += fmt.Sprintf(", max_statement_time = %g", s.cfg.StatementTimeout.Seconds())
	} else {
		set += fmt.Sprintf(", max_execution_time = %d", min(s.cfg.StatementTimeout.Milliseconds(), math.MaxUint32))
	}
	for _, sql := range []string{set, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"} {
		if _, err := s.Exec(ctx, sql); err != nil {
			return err
		}
	}
	var err error
	if s.id, err = s.Identity(ctx); err != nil {
		return err
	}
	v, err := s.Variables(ctx, "gtid_mode", "collation_server", "log_bin_basename")
	if err != nil {
		return err
	}
	s.gtids = !s.MariaDB && (v["gtid_mode"] == "ON" || v["gtid_mode"] == "ON_PERMISSIVE")
	s.coll, s.base = v["collation_server"], v["log_bin_basename"]
	return nil
}

// unbounded lifts the bound of statements, for tables that are read by one.
func (s *session) unbounded(ctx context.Context, on bool) error {
	name, value := "max_execution_time", fmt.Sprint(min(s.cfg.StatementTimeout.Milliseconds(), math.MaxUint32))
	if s.MariaDB {
		name, value = "max_statement_time", fmt.Sprint(s.cfg.StatementTimeout.Seconds())
	}
	if on {
		value = "0"
	}
	_, err := s.Exec(ctx, "SET SESSION "+name+" = "+value)
	return err
}
