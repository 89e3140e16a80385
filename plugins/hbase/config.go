package main

import (
	"time"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/writer"
	"github.com/datalink-go/datalink/sdk"
)

// Cluster says where HBase is.
type Cluster struct {
	ZooKeeper   string        `config:"zookeeper" doc:"ZooKeeper of the cluster, host:port,host:port"`
	Parent      string        `config:"parent" default:"/hbase" doc:"znode of the cluster in ZooKeeper"`
	Masters     sdk.Strings   `config:"masters" default:"[]" doc:"masters, host:port each, in place of zookeeper"`
	User        string        `config:"user" default:"datalink" doc:"user that servers are told; there is no password"`
	CallTimeout time.Duration `config:"callTimeout" default:"20s" min:"1s" max:"10m" doc:"how long one try of a call may take; a server from which nothing came in that time is given up"`
}

func (c *Cluster) validate() []sdk.Problem {
	if (c.ZooKeeper == "") == (len(c.Masters) == 0) {
		return []sdk.Problem{{Path: "zookeeper", Found: c.ZooKeeper, Expected: "either zookeeper or masters", Message: "one of the two says where the cluster is"}}
	}
	return nil
}

func (c *Cluster) dial(env sdk.Env) (*rpc.Client, error) {
	client, err := rpc.Dial(rpc.Config{
		ZooKeeper: c.ZooKeeper, Parent: c.Parent, Masters: c.Masters, User: c.User, CallTimeout: c.CallTimeout, Log: env.Log,
	})
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "%v", err)
	}
	return client, nil
}

// WriterConfig are the options of the writer.
type WriterConfig struct {
	Cluster
	Tables     map[string]writer.Rule `config:"tables" doc:"by source table, namespace.table: where its rows go; those not named go to namespace:table"`
	Family     string                 `config:"family" default:"d" doc:"column family"`
	Encoding   string                 `config:"encoding" default:"text" enum:"text|binary|phoenix" doc:"how values become bytes: as text, as Java's Bytes.toBytes does, as Phoenix does"`
	KeyCells   string                 `config:"keyCells" default:"write" enum:"write|marker" doc:"key columns: written as cells too, or in the row key alone, and a cell _0 shows that the row is there"`
	Version    string                 `config:"version" default:"position" enum:"position|event-time" doc:"what dates cells: the place in the stream, or the source's clock in milliseconds, with a weaker promise"`
	Settings   string                 `config:"settings" default:"demand" enum:"demand|accept" doc:"tables whose settings let tombstones go: refused, or written to with a warning"`
	Create     string                 `config:"create" default:"auto" enum:"auto|off" doc:"create tables that are missing"`
	Regions    int                    `config:"regions" default:"1" min:"1" max:"256" doc:"regions of a table that is created, split by the first byte; with a salt one for each bucket"`
	DDL        string                 `config:"ddl" default:"apply" enum:"apply|ignore|stop" doc:"schema changes of the source: do in the rows that are there what the source did in its own, leave them out, or stop"`
	Shared     bool                   `config:"sharedFamilies" default:"false" doc:"others have columns in the same families: a row is deleted column by column"`
	Durability string                 `config:"durability" default:"table" enum:"table|async|sync|fsync|none" doc:"when a row counts as written: as the table says, or log written later, handed to the file system, forced to disk, not written"`
	Progress   string                 `config:"progressTable" default:"datalink_progress" doc:"table of the bookkeeping rows"`
	SeenBy     sdk.Strings            `config:"seenBy" default:"[]" doc:"ids of clusters that replication must not send these rows to, for two-way set-ups"`
	Timeout    time.Duration          `config:"timeout" default:"2m" min:"1s" max:"1h" doc:"how long a batch is tried while regions move or servers are busy, before the fault is reported and tried again"`
}

// Validate checks what concerns more than one option.
func (c *WriterConfig) Validate() []sdk.Problem { return c.validate() }

func openWriter(env sdk.Env, cfg WriterConfig) (*writer.Writer, error) {
	client, err := cfg.dial(env)
	if err != nil {
		return nil, err
	}
	w, err := writer.New(writer.Config{
		Tables: cfg.Tables, Family: cfg.Family, Encoding: cfg.Encoding, KeyCells: cfg.KeyCells, Version: cfg.Version, Settings: cfg.Settings,
		Create: cfg.Create, Regions: cfg.Regions, DDL: cfg.DDL, Shared: cfg.Shared, Durability: cfg.Durability, Progress: cfg.Progress,
		SeenBy: cfg.SeenBy, Timeout: cfg.Timeout, Switches: writer.FromEnv(), Log: env.Log,
	}, writer.Cluster{Client: client})
	if err != nil {
		client.Close()
		return nil, err
	}
	return w, nil
}
