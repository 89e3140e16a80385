package sqlite

import (
	"log/slog"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
)

// Policy values of Config.
const (
	Auto         = "auto"
	Off          = "off"
	Refuse       = "refuse"
	Append       = "append"
	FullRowMatch = "full-row-match"
	Add          = "add"
	Ignore       = "ignore"
	Stop         = "stop"
	Apply        = "apply"
	ErrorPolicy  = "error"
	Null         = "null"
	Truncate     = "truncate"
	DeadLetter   = "dead-letter"
)

// Config says what a Writer writes to and how. Zero values mean the first
// choice named.
type Config struct {
	Path            string        // of the file, absolute or relative to the working directory
	Lanes           int32         // where the task asks for none; 0 = 1
	Create          string        // auto: tables that are missing are created | off
	Keyless         string        // refuse | append | full-row-match
	OnMissingColumn string        // add | ignore | stop
	OnUnfit         string        // error | null | truncate | dead-letter
	DDL             string        // apply | ignore | stop
	BusyTimeout     time.Duration // waiting for another process's transaction; 0 = 10 s
	Switches        ledger.Switches
	Log             *slog.Logger     // nil = none
	Now             func() time.Time // nil = time.Now
}

func (c Config) withDefaults() Config {
	for _, f := range []struct {
		v *string
		d string
	}{{&c.Create, Auto}, {&c.Keyless, Refuse}, {&c.OnMissingColumn, Add}, {&c.OnUnfit, ErrorPolicy}, {&c.DDL, Apply}} {
		if *f.v == "" {
			*f.v = f.d
		}
	}
	if c.Lanes <= 0 {
		c.Lanes = 1
	}
	if c.BusyTimeout <= 0 {
		c.BusyTimeout = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
