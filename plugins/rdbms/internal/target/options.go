package target

import (
	"log/slog"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/ledger"
)

// Values of the policies.
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

// Options are those of every dialect. Zero values mean the first choice named.
type Options struct {
	Lanes           int32  // where the task asks for none; 0 = 1
	Create          string // auto: tables that are missing are created | off
	Keyless         string // refuse | append | full-row-match
	OnMissingColumn string // add | ignore | stop
	OnUnfit         string // error | null | truncate | dead-letter
	DDL             string // apply | ignore | stop
	Switches        ledger.Switches
	Log             *slog.Logger     // nil = none
	Now             func() time.Time // nil = time.Now
}

// WithDefaults returns the options with every choice made.
func (o Options) WithDefaults() Options {
	for _, f := range []struct {
		v *string
		d string
	}{{&o.Create, Auto}, {&o.Keyless, Refuse}, {&o.OnMissingColumn, Add}, {&o.OnUnfit, ErrorPolicy}, {&o.DDL, Apply}} {
		if *f.v == "" {
			*f.v = f.d
		}
	}
	if o.Lanes <= 0 {
		o.Lanes = 1
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
