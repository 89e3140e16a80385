package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unsafe"

	"github.com/go-sql-driver/mysql"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
)

// Dial opens a connection.
type Dial = target.Dial

// session is one connection of the driver, without the pool of database/sql in
// front of it: a pool would connect anew on its own. It is not safe for
// concurrent use.
type session struct {
	dc   driver.Conn
	id   uint64 // of the connection at the server
	held []string
	dead bool
}

// The session's settings, whatever the server's are. Each dialect has further ones.
const (
	sqlMode     = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
	settings    = "SET SESSION sql_mode='" + sqlMode + "', time_zone='+00:00', foreign_key_checks=1, unique_checks=1, sql_safe_updates=0, wait_timeout=86400, net_read_timeout=600, net_write_timeout=600, innodb_lock_wait_timeout=%d, lock_wait_timeout=%[1]d, autocommit=%d"
	mysqlOwn    = "SET SESSION range_optimizer_max_mem_size=0, explicit_defaults_for_timestamp=1, sql_require_primary_key=DEFAULT"
	mariadbOwn  = "SET SESSION optimizer_max_sel_arg_weight=0, in_predicate_conversion_threshold=0, max_statement_time=0, idle_transaction_timeout=0, idle_write_transaction_timeout=0"
	isolation   = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
	namesAreUTF = "SET NAMES utf8mb4"
)

// connect opens a session. With auto each statement commits by itself, without it
// nothing does but COMMIT.
func (w *Writer) connect(ctx context.Context, auto bool) (*session, error) {
	cfg := mysql.NewConfig()
	a := w.addr
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.TLS = a.user, a.password, a.network, a.addr, a.tls
	cfg.Timeout, cfg.DialFunc = w.cfg.ConnectTimeout, w.cfg.Dial
	cfg.Logger = &mysql.NopLogger{}
	cfg.MaxAllowedPacket = 0 // the server's
	cfg.ClientFoundRows, cfg.MultiStatements, cfg.AllowNativePasswords = true, true, true
	k, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	dc, err := k.Connect(ctx)
	if err != nil {
		return nil, err
	}
	w.cfg.Stats.Sessions.Add(1)
	s := &session{dc: dc}
	if err := w.pin(ctx, s, auto); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (w *Writer) pin(ctx context.Context, s *session, auto bool) error {
	on := 0
	if auto {
		on = 1
	}
	for _, q := range []string{namesAreUTF, fmt.Sprintf(settings, int(max(w.cfg.LockWait.Seconds(), 1)), on), isolation} {
		if err := s.exec(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	rows, err := s.query(ctx, "SELECT CONNECTION_ID(), VERSION()")
	if err != nil {
		return err
	}
	s.id = uint64(rows[0][0].number())
	own := mysqlOwn
	if strings.Contains(rows[0][1].text(), "MariaDB") {
		own = mariadbOwn
	}
	// Settings that an older server does not know only make it slower.
	for _, q := range strings.Split(strings.TrimPrefix(own, "SET SESSION "), ", ") {
		if err := s.exec(ctx, "SET SESSION "+q); err != nil && number(err) == 0 {
			return err
		}
	}
	return nil
}

// view makes a string of bytes without a copy. The driver copies what it sends.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// exec runs statements whose results do not matter.
func (s *session) exec(ctx context.Context, text string) error {
	_, err := s.change(ctx, text)
	return err
}

// change runs one or several statements in one packet and returns the count of
// rows that each of them matched.
func (s *session) change(ctx context.Context, text string) ([]int64, error) {
	r, err := s.dc.(driver.ExecerContext).ExecContext(ctx, text, nil)
	if err != nil {
		s.note(err)
		return nil, err
	}
	return r.(mysql.Result).AllRowsAffected(), nil
}

// matched runs one statement and returns the count of rows it matched.
func (s *session) matched(ctx context.Context, text string) (int64, error) {
	n, err := s.change(ctx, text)
	if err != nil {
		return 0, err
	}
	return n[len(n)-1], nil
}

// note marks the session dead where err is not an answer of the server.
func (s *session) note(err error) {
	if number(err) == 0 || lost(err) {
		s.dead = true
	}
}

// value is one column of a small result; nil is NULL.
type value []byte

func (v value) text() string { return string(v) }

func (v value) number() int64 {
	switch string(v) {
	case "ON", "YES":
		return 1
	case "OFF", "NO":
		return 0
	}
	n, _ := strconv.ParseInt(string(v), 10, 64)
	return n
}

func (v value) unsigned() uint64 {
	n, _ := strconv.ParseUint(string(v), 10, 64)
	return n
}

// query returns all rows of a small result.
func (s *session) query(ctx context.Context, text string) ([][]value, error) {
	var out [][]value
	err := s.each(ctx, text, func(row []driver.Value) error {
		r := make([]value, len(row))
		for i, v := range row {
			switch v := v.(type) {
			case nil:
			case []byte:
				r[i] = append(value{}, v...)
			case string:
				r[i] = value(v)
			default:
				r[i] = value(fmt.Sprint(v))
			}
		}
		out = append(out, r)
		return nil
	})
	return out, err
}

// each calls f for each row of a result; the row is good until f returns.
func (s *session) each(ctx context.Context, text string, f func([]driver.Value) error) error {
	r, err := s.dc.(driver.QueryerContext).QueryContext(ctx, text, nil)
	if err != nil {
		s.note(err)
		return err
	}
	defer r.Close()
	row := make([]driver.Value, len(r.Columns()))
	for {
		switch err := r.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			s.note(err)
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

func (s *session) close() {
	s.dead = true
	_ = s.dc.Close()
}
