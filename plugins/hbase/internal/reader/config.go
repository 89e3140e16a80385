package reader

import (
	"log/slog"
	"net"
	"regexp"

	"github.com/google/uuid"

	"github.com/datalink-go/datalink/sdk"
)

// Config says what is read. Zero values mean the first choice named.
type Config struct {
	Tables    map[string]Table // by the table's name in HBase
	Start     string           // snapshot | latest
	Row       string           // current | change
	Scope     string           // set | demand: REPLICATION_SCOPE of the families
	Serial    bool             // order of a region over its moves and splits
	Shared    bool             // other tasks are registered under the same parent
	NotFrom   []string         // ids of clusters whose changes are left out
	Listen    string           // "" = 127.0.0.1:0
	Host      string           // that region servers reach this worker by; "" = the one of Listen
	ZooKeeper string           // where the sink is registered; the source's servers must reach it
	Parent    string           // znode of the sink; "" = /datalink/TASK
	Peer      string           // id; "" = datalink_TASK
	ClusterID string           // that the sink has; "" = made of the task's uid
	Window    int              // bytes that sources may have sent and that are not durable; 0 = 128 MiB
	Scanners  int              // regions scanned at a time; 0 = 4
	Task      string
	Switches  Switches
	Log       *slog.Logger
}

// Values of Row.
const (
	Current = "current"
	Change  = "change"
)

var unfitID = regexp.MustCompile(`[^A-Za-z0-9_]`)

func (c Config) withDefaults() (Config, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	task := unfitID.ReplaceAllString(c.Task, "_")
	for _, f := range []struct {
		v *string
		d string
	}{
		{&c.Row, Current},
		{&c.Listen, "127.0.0.1:0"},
		{&c.Peer, "datalink_" + task},
		{&c.Parent, "/datalink/" + task},
	} {
		if *f.v == "" {
			*f.v = f.d
		}
	}
	if c.Host == "" {
		c.Host, _, _ = net.SplitHostPort(c.Listen)
	}
	if c.Window <= 0 {
		c.Window = 128 << 20
	}
	if c.Scanners <= 0 {
		c.Scanners = 4
	}
	for _, id := range append([]string{c.ClusterID}, c.NotFrom...) {
		if id == "" {
			continue
		}
		if _, err := uuid.Parse(id); err != nil {
			return c, sdk.Faultf(sdk.CodeInvalidConfig, "id of a cluster: found %q, expected a UUID", id)
		}
	}
	return c, nil
}

// clusterID is that under which the sink is registered.
func (c *Config) clusterID(ex *sdk.Execution) string {
	if c.ClusterID != "" {
		return c.ClusterID
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("datalink:"+ex.TaskUID)).String()
}
