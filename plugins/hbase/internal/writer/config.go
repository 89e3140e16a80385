package writer

import (
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/value"
	"github.com/datalink-go/datalink/sdk"
)

// Policy values of Config.
const (
	ByPosition  = "position"
	ByEventTime = "event-time"
	Demand      = "demand"
	Accept      = "accept"
	Auto        = "auto"
	Off         = "off"
	Stop        = "stop"
	Ignore      = "ignore"
	Apply       = "apply"
)

// Rule says how the rows of one source table lie in HBase. Empty fields take what
// the configuration says for all.
type Rule struct {
	Table    string            `config:"table" doc:"HBase table, namespace:name; left out = as the source's"`
	RowKey   string            `config:"rowKey" doc:"template of the row key, such as {salt:16}{region:text}|{id}; left out = the columns of the key, order-preserving"`
	Family   string            `config:"family" doc:"family of columns that columns does not name"`
	Columns  map[string]string `config:"columns" doc:"column → family:qualifier"`
	Encoding string            `config:"encoding" enum:"text|binary|phoenix|" doc:"how values become bytes"`
}

// Config says what a Writer writes to and how. Zero values mean the first choice
// named.
type Config struct {
	Tables     map[string]Rule // by the source table's name, namespace.table
	Family     string          // "" = d
	Encoding   string          // text | binary | phoenix
	KeyCells   string          // write | marker
	Version    string          // position | event-time
	Settings   string          // demand | accept
	Create     string          // auto | off
	DDL        string          // apply | ignore | stop
	Shared     bool            // other writers have columns in the families
	Durability string          // table | async | sync | fsync | none
	Progress   string          // bookkeeping table; "" = datalink_progress
	Regions    int             // of a table that is made; 0 = one, or one a salt
	SeenBy     []string        // cluster ids that marks name
	Timeout    time.Duration   // of one Apply; 0 = 2 minutes
	Switches   Switches
	Log        *slog.Logger
	Now        func() time.Time
}

// Values of KeyCells.
const (
	KeyWrite  = "write"
	KeyMarker = "marker"
)

var durabilities = map[string]rpc.Durability{
	"": rpc.UseDefault, "table": rpc.UseDefault, "none": rpc.SkipWAL, "async": rpc.AsyncWAL, "sync": rpc.SyncWAL, "fsync": rpc.FsyncWAL,
}

func (c Config) withDefaults() (Config, error) {
	for _, f := range []struct {
		v *string
		d string
	}{
		{&c.Family, "d"},
		{&c.Encoding, string(value.Text)},
		{&c.KeyCells, KeyWrite},
		{&c.Version, ByPosition},
		{&c.Settings, Demand},
		{&c.Create, Auto},
		{&c.DDL, Apply},
		{&c.Progress, "datalink_progress"},
	} {
		if *f.v == "" {
			*f.v = f.d
		}
	}
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if _, ok := durabilities[c.Durability]; !ok {
		return c, sdk.Faultf(sdk.CodeInvalidConfig, "durability: found %q, expected table, async, sync, fsync or none", c.Durability)
	}
	for name, r := range c.Tables {
		for col, at := range r.Columns {
			if f, _, ok := strings.Cut(at, ":"); !ok || f == "" {
				return c, sdk.Faultf(sdk.CodeInvalidConfig, "tables.%s.columns.%s: found %q, expected family:qualifier", name, col, at)
			}
		}
	}
	return c, nil
}

func (c *Config) marks() ([]rpc.Attribute, error) {
	var ids [][16]byte
	for _, s := range c.SeenBy {
		id, err := uuid.Parse(s)
		if err != nil {
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "seenBy: found %q, expected the UUID of a cluster", s)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return []rpc.Attribute{rpc.ClusterAttribute(ids...)}, nil
}
