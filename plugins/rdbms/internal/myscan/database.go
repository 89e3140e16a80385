package myscan

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
)

var _ scan.Database = (*Database)(nil)

// Database is a server whose tables are copied.
type Database struct {
	name  string
	db    *sql.DB
	sel   scan.Selection
	maria bool
}

// NewDatabase returns the server that the url names: mysql://user:secret@host:3306/database.
// With a database only its tables are read.
func NewDatabase(text string, sel scan.Selection) (*Database, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: not a MySQL url").Suggest("mysql://user:secret@host:3306/database?tls=true")
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr = "tcp", u.Host
	if u.Port() == "" {
		cfg.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.DBName = strings.Trim(u.Path, "/")
	cfg.Timeout = 10 * time.Second
	cfg.Collation = "utf8mb4_general_ci"
	for key, v := range u.Query() {
		switch key {
		case "tls":
			cfg.TLSConfig = v[0]
		default:
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: unknown parameter %s", key).Suggest("tls=true, skip-verify or preferred")
		}
	}
	// Text comes in the character set of its column: the server would write ? for
	// what has no Unicode character.
	cfg.Params = map[string]string{"time_zone": "'+00:00'", "sql_mode": "''", "max_execution_time": "0", "character_set_results": "NULL"}
	name := cfg.Addr
	if cfg.DBName != "" {
		name += "/" + cfg.DBName
	}
	d := &Database{name: name, sel: sel}
	delete(cfg.Params, "max_execution_time") // MariaDB does not have it
	conn, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: %v", err)
	}
	d.db = sql.OpenDB(conn)
	d.db.SetMaxIdleConns(0)
	return d, nil
}

// Name is host:port/database, without user and secret.
func (d *Database) Name() string { return d.name }

// Begin implements scan.Database; there is nothing to share among sessions.
func (d *Database) Begin(context.Context) error { return nil }

// Open implements scan.Source.
func (d *Database) Open(ctx context.Context) (scan.Session, error) {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return nil, d.fault("connect to "+d.name, err)
	}
	for _, s := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"} {
		if _, err := c.ExecContext(ctx, s); err != nil {
			_ = c.Close()
			return nil, d.fault("begin to read", err)
		}
	}
	return &session{d: d, conn: c}, nil
}

// Close implements scan.Database.
func (d *Database) Close() { _ = d.db.Close() }

// Check implements scan.Database.
func (d *Database) Check(ctx context.Context) ([]sdk.Finding, error) {
	tables, err := d.Tables(ctx)
	if err != nil {
		f := sdk.AsFault(err)
		return []sdk.Finding{{Severity: sdk.Error, Subject: d.name, Message: f.Message, Advice: f.Suggestion}}, nil
	}
	return scan.CheckTables(tables), nil
}

// fault gives an error of the server its code.
func (d *Database) fault(what string, err error) error {
	var f *sdk.Fault
	var my *mysql.MySQLError
	switch {
	case err == nil || errors.As(err, &f) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &my):
		text := fmt.Sprintf("%s: %s (error %d)", what, my.Message, my.Number)
		switch my.Number {
		case 1044, 1045, 1142, 1143, 1227:
			return sdk.Faultf(sdk.CodeUnauthorized, "%s", text).Suggest("the user needs SELECT on the tables")
		case 1040, 1053, 1158, 1159, 1160, 1161, 1205, 1213, 1317, 1927, 4031:
			return sdk.Faultf(sdk.CodeUnavailable, "%s", text).Retry()
		}
		return sdk.Faultf(sdk.CodeInternal, "%s", text)
	}
	return sdk.Faultf(sdk.CodeUnavailable, "%s: %v", what, err).Retry().Suggest("see that the server %s runs and can be reached", d.name)
}
