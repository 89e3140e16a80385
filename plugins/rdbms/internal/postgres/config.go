package postgres

import (
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
)

// Values of Config.Bulk.
const (
	BulkAuto = "auto"
	BulkOff  = "off"
)

// Config says what a Writer writes to and how. Zero values mean the first
// choice named.
type Config struct {
	target.Options
	// URL is postgres://user:password@host:port/database?sslmode=…, as libpq reads
	// it; several hosts may be named.
	URL string
	// Schema of tables without a namespace and of the writer's own; "" = public.
	Schema string
	// Bulk says whether large groups of snapshot rows go through COPY: auto | off.
	Bulk string
	// Triggers of the target: refuse tables that have some | run | skip. Skip sets
	// session_replication_role, which needs a privilege, and leaves out foreign keys.
	Triggers string
	// ConnectTimeout bounds each connection; 0 = 10 s.
	ConnectTimeout time.Duration
	// NetworkTimeout is how long a server may show no sign of life; 0 = 30 s.
	NetworkTimeout time.Duration
	// ClaimTimeout bounds the wait for sessions of earlier claims to end; 0 = 30 s.
	ClaimTimeout time.Duration
	// LockTimeout bounds the wait of a statement for a lock; 0 = 30 s.
	LockTimeout time.Duration
	// Stats are counted up; nil = nobody looks.
	Stats *target.Stats
}

// Values of Config.Triggers.
const (
	TriggersRefuse = "refuse"
	TriggersRun    = "run"
	TriggersSkip   = "skip"
)

func (c Config) withDefaults() Config {
	c.Options = c.Options.WithDefaults()
	for _, f := range []struct {
		v *string
		d string
	}{{&c.Schema, "public"}, {&c.Bulk, BulkAuto}, {&c.Triggers, TriggersRefuse}} {
		if *f.v == "" {
			*f.v = f.d
		}
	}
	if c.Stats == nil {
		c.Stats = &target.Stats{}
	}
	for _, f := range []struct {
		v *time.Duration
		d time.Duration
	}{{&c.ConnectTimeout, 10 * time.Second}, {&c.NetworkTimeout, 30 * time.Second}, {&c.ClaimTimeout, 30 * time.Second}, {&c.LockTimeout, 30 * time.Second}} {
		if *f.v <= 0 {
			*f.v = f.d
		}
	}
	return c
}

// parse reads the url. Nothing of it but host and database reaches a message.
func (c *Config) parse() (*pgconn.Config, error) {
	pg, err := pgconn.ParseConfig(c.URL)
	if err != nil {
		var reason error = errors.New("it does not parse")
		if inner := errors.Unwrap(err); inner != nil && !strings.Contains(inner.Error(), "://") {
			reason = inner
		}
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url: %v", reason).
			Suggest("expected postgres://user:password@host:5432/database?sslmode=verify-full")
	}
	if pg.Database == "" {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "url names no database").Suggest("expected postgres://user:password@host:5432/database")
	}
	pg.ConnectTimeout = c.ConnectTimeout
	pg.DialFunc = pgconn.DialFunc(target.Dialer(c.NetworkTimeout))
	if pg.RuntimeParams["application_name"] == "" {
		pg.RuntimeParams["application_name"] = "datalink"
	}
	pg.RuntimeParams["client_encoding"] = "UTF8"
	if pg.ValidateConnect == nil {
		// Of several hosts the one that takes writes.
		pg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return pg, nil
}
