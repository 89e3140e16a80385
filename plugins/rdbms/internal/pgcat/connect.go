package pgcat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgtypes"
	"github.com/datalink-go/datalink/sdk"
)

// Server is a database of a server that can be connected to.
type Server struct {
	cfg *pgconn.Config
}

// Parse reads a url such as postgres://user:secret@host:5432/db?sslmode=verify-full.
// Errors do not repeat it.
func Parse(url string) (*Server, error) {
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: not a PostgreSQL url").Suggest("postgres://user:secret@host:5432/database?sslmode=verify-full")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	for k, v := range pgtypes.Session() {
		cfg.RuntimeParams[k] = v
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "datalink"
	}
	return &Server{cfg}, nil
}

// Name is host:port/database, without user and secret.
func (s *Server) Name() string {
	return net.JoinHostPort(s.cfg.Host, strconv.Itoa(int(s.cfg.Port))) + "/" + s.cfg.Database
}

// Database is the name of the database.
func (s *Server) Database() string { return s.cfg.Database }

// Connect opens a connection for SQL.
func (s *Server) Connect(ctx context.Context) (*pgconn.PgConn, error) {
	return s.connect(ctx, s.cfg.Copy())
}

// Replicate opens a connection for the replication protocol. It receives through
// the returned buffer, which is large so that a busy stream needs few system calls.
func (s *Server) Replicate(ctx context.Context) (*pgconn.PgConn, *bufio.Reader, error) {
	cfg := s.cfg.Copy()
	cfg.RuntimeParams["replication"] = "database"
	var buf *bufio.Reader
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		buf = bufio.NewReaderSize(r, 256<<10)
		return pgproto3.NewFrontend(buf, w)
	}
	c, err := s.connect(ctx, cfg)
	return c, buf, err
}

func (s *Server) connect(ctx context.Context, cfg *pgconn.Config) (*pgconn.PgConn, error) {
	c, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, s.Fault("connect to "+s.Name(), err)
	}
	return c, nil
}

// Fault makes a fault of an error of the server or of the connection to it.
func (s *Server) Fault(what string, err error) error {
	var f *sdk.Fault
	var pg *pgconn.PgError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &pg):
		return sqlFault(what, pg)
	}
	// The text of a connection error may hold the settings but never the secret.
	return sdk.Faultf(sdk.CodeUnavailable, "%s: %v", what, shorten(err)).Retry().Suggest("see that the server %s runs and can be reached", s.Name())
}

func shorten(err error) string {
	text := err.Error()
	if i := strings.Index(text, "\n"); i > 0 {
		text = text[:i]
	}
	return text
}

func sqlFault(what string, pg *pgconn.PgError) error {
	text := fmt.Sprintf("%s: %s (SQLSTATE %s)", what, pg.Message, pg.Code)
	switch class := pg.Code[:min(2, len(pg.Code))]; {
	case class == "28":
		return sdk.Faultf(sdk.CodeUnauthorized, "%s", text).Suggest("see pg_hba.conf of the server and user and secret in url")
	case pg.Code == "42501":
		return sdk.Faultf(sdk.CodeUnauthorized, "%s", text).Suggest("the user needs SELECT on the tables and, for the log, REPLICATION and CREATE on the database; see the README")
	case class == "08" || class == "57" || class == "53" || class == "40":
		return sdk.Faultf(sdk.CodeUnavailable, "%s", text).Retry()
	case pg.Code == "3D000":
		return sdk.Faultf(sdk.CodeInvalidConfig, "%s", text).Suggest("name an existing database in url")
	}
	return sdk.Faultf(sdk.CodeInternal, "%s", text)
}

// IsCode reports whether err is an error of the server with that SQLSTATE.
func IsCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// Query runs a statement and returns its rows as the server prints them; nil is
// NULL.
func Query(ctx context.Context, c *pgconn.PgConn, sql string, args ...string) ([][][]byte, error) {
	params := make([][]byte, len(args))
	for i, a := range args {
		params[i] = []byte(a)
	}
	r := c.ExecParams(ctx, sql, params, nil, nil, nil).Read()
	return r.Rows, r.Err
}

// Exec runs statements without parameters.
func Exec(ctx context.Context, c *pgconn.PgConn, sql string) error {
	_, err := c.Exec(ctx, sql).ReadAll()
	return err
}

// Close ends a connection without waiting for the server for long.
func Close(c *pgconn.PgConn) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// Quote quotes an identifier.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Literal quotes a text.
func Literal(text string) string {
	q := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return " E" + strings.ReplaceAll(q, `\`, `\\`)
	}
	return q
}
