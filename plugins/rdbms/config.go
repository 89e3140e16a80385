package main

import (
	"net/url"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/mysql"
	pgwriter "github.com/datalink-go/datalink/plugins/rdbms/internal/postgres"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/sqlite"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Config are the options of the writer.
type Config struct {
	URL             sdk.Secret    `config:"url" required:"true" doc:"target: mysql://user:password@host:port/database, mariadb:// and postgres:// alike, sqlite:///absolute/path or sqlite://relative/path"`
	Lanes           int32         `config:"lanes" default:"1" min:"1" max:"64" doc:"lanes where the task asks for none; SQLite writes one transaction at a time, more lanes are not faster"`
	Create          string        `config:"create" default:"auto" enum:"auto|off" doc:"create tables that are missing"`
	Keyless         string        `config:"keyless" default:"refuse" enum:"refuse|append|full-row-match" doc:"tables without a key: refuse them, only add rows, or find a row by all of its values"`
	OnMissingColumn string        `config:"onMissingColumn" default:"add" enum:"add|ignore|stop" doc:"a column of the source that the target table lacks"`
	OnUnfit         string        `config:"onUnfit" default:"error" enum:"error|null|truncate|dead-letter" doc:"a value the target cannot hold"`
	DDL             string        `config:"ddl" default:"apply" enum:"apply|ignore|stop" doc:"schema changes of the source"`
	Triggers        string        `config:"triggers" default:"refuse" enum:"refuse|run|skip" doc:"tables of the target with triggers, which would do again what a trigger of the source did; skip (PostgreSQL): they do not fire, nor are foreign keys looked at"`
	Bulk            string        `config:"bulk" default:"auto" enum:"auto|off" doc:"rows of a snapshot by LOAD DATA LOCAL (MySQL, MariaDB) where the server allows it, by COPY (PostgreSQL)"`
	SkipKeys        sdk.Strings   `config:"skipKeys" default:"[]" doc:"rows that are not written, as TABLE:KEY, such as shop.orders:17"`
	RowsPerSecond   int64         `config:"rowsPerSecond" default:"0" min:"0" doc:"most rows written in a second; 0 = no limit"`
	BytesPerSecond  sdk.ByteSize  `config:"bytesPerSecond" default:"0" doc:"most bytes of rows written in a second; 0 = no limit"`
	DryRun          bool          `config:"dryRun" default:"false" doc:"not SQLite: log what would be written, write nothing and store no progress"`
	ConnectTimeout  time.Duration `config:"connectTimeout" default:"10s" min:"1ms" max:"1h" doc:"not SQLite: how long a connection may take to come about"`
	NetworkTimeout  time.Duration `config:"networkTimeout" default:"30s" min:"1s" max:"1h" doc:"not SQLite: how long a server may show no sign of life"`
	LockTimeout     time.Duration `config:"lockTimeout" default:"20s" min:"1s" max:"1h" doc:"not SQLite: how long to wait for another session's lock before the transaction is tried again"`
	Schema          string        `config:"schema" default:"public" doc:"PostgreSQL: schema of tables without a namespace and of the tables with the progress"`
	ClaimTimeout    time.Duration `config:"claimTimeout" default:"30s" min:"1s" max:"1h" doc:"PostgreSQL: how long a claim may wait for the sessions of an earlier one to end"`
	BusyTimeout     time.Duration `config:"busyTimeout" default:"10s" min:"1ms" max:"1h" doc:"SQLite: how long to wait for another process's transaction on the file"`
}

const urlForms = "mysql://user:password@host:port/database, mariadb://…, postgres://…, sqlite:///absolute/path or sqlite://relative/path"

// open chooses the dialect by the scheme of the url, and puts the guard in front
// of it.
func open(env sdk.Env, cfg Config) (target.Writer, error) {
	stats := &target.Stats{}
	w, err := dialect(env, cfg, stats)
	if err != nil {
		return nil, err
	}
	g, err := target.NewGuard(w, target.GuardConfig{
		SkipKeys: cfg.SkipKeys, RowsPerSecond: cfg.RowsPerSecond, BytesPerSecond: int64(cfg.BytesPerSecond), DryRun: cfg.DryRun, Stats: stats, Log: env.Log,
	})
	if err != nil {
		return nil, err
	}
	if _, flat := w.(*sqlite.Writer); flat {
		return g, nil
	}
	return spaced{g}, nil
}

// spaced is a writer whose target has schemas: the host leaves the names of tables
// as they are.
type spaced struct{ target.Writer }

// Without names the capabilities of the manifest that the writer lacks.
func (spaced) Without() []string { return []string{manifest.FlatNames} }

func dialect(env sdk.Env, cfg Config, stats *target.Stats) (target.Writer, error) {
	o := target.Options{
		Lanes: cfg.Lanes, Create: cfg.Create, Keyless: cfg.Keyless, OnMissingColumn: cfg.OnMissingColumn, OnUnfit: cfg.OnUnfit, DDL: cfg.DDL,
		Switches: ledger.FromEnv(), Log: env.Log,
	}
	scheme, rest, ok := strings.Cut(cfg.URL.Reveal(), "://")
	if !ok {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: found no scheme, expected %s", urlForms)
	}
	if scheme == "sqlite" {
		if rest == "" || strings.HasSuffix(rest, "/") {
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: found sqlite://%s, which names no file", rest).Suggest("sqlite:///absolute/path or sqlite://relative/path")
		}
		return sqlite.New(sqlite.Config{
			Path: rest, Lanes: o.Lanes, Create: o.Create, Keyless: o.Keyless, OnMissingColumn: o.OnMissingColumn, OnUnfit: o.OnUnfit,
			DDL: o.DDL, BusyTimeout: cfg.BusyTimeout, Switches: o.Switches, Log: o.Log,
		})
	}
	switch scheme {
	case "postgres", "postgresql":
		return pgwriter.New(pgwriter.Config{
			Options: o, URL: cfg.URL.Reveal(), Schema: cfg.Schema, Triggers: cfg.Triggers, Bulk: cfg.Bulk,
			Stats: stats, ConnectTimeout: cfg.ConnectTimeout, NetworkTimeout: cfg.NetworkTimeout, ClaimTimeout: cfg.ClaimTimeout, LockTimeout: cfg.LockTimeout,
		})
	}
	u, err := url.Parse(cfg.URL.Reveal())
	if err != nil {
		// The error of url.Parse would show the password.
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: it cannot be read").Suggest("%s; encode special characters of the password as %%XX", urlForms)
	}
	switch scheme {
	case "mysql", "mariadb":
		if cfg.Triggers == pgwriter.TriggersSkip {
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "triggers: found skip, expected refuse or run: MySQL and MariaDB cannot keep triggers from firing")
		}
		return mysql.New(mysql.Config{
			Options: o, URL: u, Triggers: cfg.Triggers, Bulk: cfg.Bulk, ConnectTimeout: cfg.ConnectTimeout, NetworkTimeout: cfg.NetworkTimeout, LockWait: cfg.LockTimeout, Stats: stats,
		})
	}
	return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: found scheme %q, expected mysql, mariadb, postgres or sqlite", scheme).Suggest(urlForms)
}
