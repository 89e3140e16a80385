package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// session is one connection with what belongs to it. It is never connected anew
// behind the caller's back, and not safe for concurrent use.
type session struct {
	pc      *pgconn.PgConn
	pid     uint32 // of the backend that answers
	proxied bool   // something stands between: it named another backend
	stmts   map[string]string
	copies  map[string]bool // layouts of the temporary table of the session
	pipe    pipe            // buffers that serve one transaction after the other
}

// maxStatements is how many prepared statements a session keeps: minimal row
// images can name columns in any combination.
const maxStatements = 256

// Settings of every session. Those that a server does not know are left out. The
// planner's choice is taken away where it would look at statistics: they say
// nothing of a table that is being filled, and a plan is kept.
func (w *Writer) settings() [][2]string {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	out := [][2]string{
		{"DateStyle", "ISO, MDY"},
		{"IntervalStyle", "postgres"},
		{"TimeZone", "UTC"},
		{"extra_float_digits", "3"},
		{"bytea_output", "hex"},
		{"standard_conforming_strings", "on"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_deferrable", "off"},
		{"idle_in_transaction_session_timeout", "0"},
		{"idle_session_timeout", "0"},
		{"lock_timeout", ms(w.cfg.LockTimeout)},
		{"client_connection_check_interval", "5000"},
		{"tcp_user_timeout", ms(w.cfg.NetworkTimeout)},
		{"tcp_keepalives_idle", "10"},
		{"plan_cache_mode", "force_generic_plan"},
		{"jit", "off"},
		{"enable_seqscan", "off"},
		{"enable_hashjoin", "off"},
		{"enable_mergejoin", "off"},
	}
	if w.cfg.Triggers == TriggersSkip {
		out = append(out, [2]string{"session_replication_role", "replica"})
	}
	return out
}

// dial opens a session.
func (w *Writer) dial(ctx context.Context) (*session, error) {
	pc, err := pgconn.ConnectConfig(ctx, w.pg)
	if err != nil {
		return nil, w.fault("connect", err)
	}
	w.cfg.Stats.Sessions.Add(1)
	s := &session{pc: pc, stmts: map[string]string{}, copies: map[string]bool{}}
	if err := s.set(ctx, w.settings()); err != nil {
		s.close()
		return nil, w.fault("connect", err)
	}
	return s, nil
}

func (s *session) set(ctx context.Context, settings [][2]string) error {
	var b strings.Builder
	b.WriteString("SET statement_timeout = 0;\nSELECT set_config(v.name, v.val, false) FROM (VALUES ")
	for i, kv := range settings {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + literal(kv[0]) + "," + literal(kv[1]) + ")")
	}
	b.WriteString(") AS v(name, val) JOIN pg_catalog.pg_settings s ON lower(s.name) = lower(v.name);\n")
	// A commit that a crash of the server takes back would be a target that went back.
	b.WriteString("SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';\n")
	b.WriteString("SELECT pg_backend_pid()")
	results, err := s.pc.Exec(ctx, b.String()).ReadAll()
	if err != nil {
		return err
	}
	last := results[len(results)-1]
	if len(last.Rows) != 1 {
		return fmt.Errorf("pg_backend_pid() returned %d rows", len(last.Rows))
	}
	pid, err := strconv.ParseUint(string(last.Rows[0][0]), 10, 32)
	if err != nil {
		return err
	}
	s.pid = uint32(pid)
	s.proxied = s.pid != s.pc.PID()
	return nil
}

// closed reports whether the session is of no use any more.
func (s *session) closed() bool { return s.pc.IsClosed() }

// close ends the session. A server that does not answer is not waited for.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = s.pc.Close(ctx)
}

// row is a row of a result in text form.
type row [][]byte

func (r row) text(i int) string { return string(r[i]) }
func (r row) bool(i int) bool   { return string(r[i]) == "t" }

func (r row) int(i int) int64 {
	n, _ := strconv.ParseInt(string(r[i]), 10, 64)
	return n
}

// bytes reads a bytea.
func (r row) bytes(i int) []byte {
	b, _ := hex.DecodeString(strings.TrimPrefix(string(r[i]), `\x`))
	return b
}

// params turns arguments into parameters: bytes go in binary, all else as text.
func params(args []any) (values [][]byte, formats []int16) {
	for _, a := range args {
		var v []byte
		f := int16(0)
		switch a := a.(type) {
		case nil:
		case string:
			v = []byte(a)
		case int64:
			v = strconv.AppendInt(nil, a, 10)
		case int32:
			v = strconv.AppendInt(nil, int64(a), 10)
		case int:
			v = strconv.AppendInt(nil, int64(a), 10)
		case uint64:
			v = strconv.AppendInt(nil, int64(a), 10)
		case bool:
			v = []byte{'f'}
			if a {
				v[0] = 't'
			}
		case []byte:
			v, f = a, 1
			if v == nil {
				v = []byte{}
			}
		default:
			panic(fmt.Sprintf("postgres: parameter of type %T", a))
		}
		values, formats = append(values, v), append(formats, f)
	}
	return values, formats
}

// query runs one statement and returns its rows.
func (s *session) query(ctx context.Context, sql string, args ...any) ([]row, error) {
	values, formats := params(args)
	res := s.pc.ExecParams(ctx, sql, values, nil, formats, nil).Read()
	if res.Err != nil {
		return nil, res.Err
	}
	out := make([]row, len(res.Rows))
	for i, r := range res.Rows {
		out[i] = r
	}
	return out, nil
}

// exec runs one statement and returns the count of rows it touched.
func (s *session) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	values, formats := params(args)
	res := s.pc.ExecParams(ctx, sql, values, nil, formats, nil).Read()
	return res.CommandTag.RowsAffected(), res.Err
}

// run runs statements without parameters.
func (s *session) run(ctx context.Context, sql string) error {
	return s.pc.Exec(ctx, sql).Close()
}

// prepared returns the name of the statement, prepared where it is not yet. It is
// parsed outside of the pipeline, so that its errors are its own.
func (s *session) prepared(ctx context.Context, sql string, oids []uint32) (string, error) {
	if name, ok := s.stmts[sql]; ok {
		return name, nil
	}
	if len(s.stmts) >= maxStatements {
		if err := s.run(ctx, "DEALLOCATE ALL"); err != nil {
			return "", err
		}
		clear(s.stmts)
	}
	name := "d" + strconv.Itoa(len(s.stmts))
	if _, err := s.pc.Prepare(ctx, name, sql, oids); err != nil {
		return "", err
	}
	s.stmts[sql] = name
	return name, nil
}
