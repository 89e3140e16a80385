package main

import (
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/sqlite"
	"github.com/datalink-go/datalink/sdk"
)

// Config are the options of the writer.
type Config struct {
	URL             sdk.Secret    `config:"url" required:"true" doc:"target: sqlite:///absolute/path or sqlite://relative/path"`
	Lanes           int32         `config:"lanes" default:"1" min:"1" max:"64" doc:"lanes where the task asks for none; SQLite writes one transaction at a time, more lanes are not faster"`
	Create          string        `config:"create" default:"auto" enum:"auto|off" doc:"create tables that are missing"`
	Keyless         string        `config:"keyless" default:"refuse" enum:"refuse|append|full-row-match" doc:"tables without a key: refuse them, only add rows, or find a row by all of its values"`
	OnMissingColumn string        `config:"onMissingColumn" default:"add" enum:"add|ignore|stop" doc:"a column of the source that the target table lacks"`
	OnUnfit         string        `config:"onUnfit" default:"error" enum:"error|null|truncate|dead-letter" doc:"a value the target cannot hold"`
	DDL             string        `config:"ddl" default:"apply" enum:"apply|ignore|stop" doc:"schema changes of the source"`
	BusyTimeout     time.Duration `config:"busyTimeout" default:"10s" min:"1ms" max:"1h" doc:"how long to wait for another process's transaction on the file"`
}

// dialect is what a package for one kind of database provides.
type dialect interface {
	sdk.TransactionalWriter
	sdk.Discoverer
	sdk.Releaser
	sdk.TargetScanner
}

// open chooses the dialect by the scheme of the url.
func open(env sdk.Env, cfg Config) (dialect, error) {
	scheme, rest, ok := strings.Cut(cfg.URL.Reveal(), "://")
	switch {
	case !ok:
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: found no scheme, expected sqlite:///absolute/path or sqlite://relative/path")
	case scheme != "sqlite":
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: found scheme %q, expected sqlite: this version writes to SQLite files only", scheme).
			Suggest("sqlite:///absolute/path or sqlite://relative/path")
	case rest == "" || strings.HasSuffix(rest, "/"):
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: found sqlite://%s, which names no file", rest).Suggest("sqlite:///absolute/path or sqlite://relative/path")
	}
	return sqlite.New(sqlite.Config{
		Path: rest, Lanes: cfg.Lanes, Create: cfg.Create, Keyless: cfg.Keyless, OnMissingColumn: cfg.OnMissingColumn, OnUnfit: cfg.OnUnfit,
		DDL: cfg.DDL, BusyTimeout: cfg.BusyTimeout, Switches: ledger.FromEnv(), Log: env.Log,
	})
}
