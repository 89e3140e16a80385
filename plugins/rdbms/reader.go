package main

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/litescan"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/myscan"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pglog"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgscan"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/poll"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// ReaderConfig are the options of the reader.
type ReaderConfig struct {
	URL         sdk.Secret             `config:"url" required:"true" doc:"source: postgres://user:password@host:port/database, mysql://…, mariadb://…, sqlite:///absolute/path or sqlite://relative/path"`
	Mode        string                 `config:"mode" enum:"stream|snapshot|poll" default:"stream" doc:"stream: the log of PostgreSQL; snapshot: each table once, then the end; poll: what is new by a column that grows"`
	Tables      sdk.Strings            `config:"tables" default:"[]" doc:"tables to read, as patterns of schema.table; ! excludes; left out = all but the server's own"`
	Start       string                 `config:"start" default:"snapshot" doc:"stream: where to begin when there is no progress: snapshot, latest or position:0/16B3748"`
	Slot        string                 `config:"slot" doc:"stream: replication slot; left out = datalink_ and the task's uid"`
	Publication string                 `config:"publication" doc:"stream: publication; one that is there is used as it is; left out = made and kept like the slot's name"`
	Streaming   bool                   `config:"streaming" default:"true" doc:"stream: take large transactions before they commit and keep them in spillDir until then; false = the server keeps them"`
	SpillDir    string                 `config:"spillDir" doc:"stream: folder for transactions that have not committed; left out = the system's for temporary files"`
	DDL         string                 `config:"ddl" enum:"apply|ignore|stop" default:"apply" doc:"stream: schema changes: pass them on, leave them out, or stop at the first"`
	SlotWait    time.Duration          `config:"slotWait" default:"30s" min:"1ms" max:"1h" doc:"stream: how long to wait for a slot that another connection uses"`
	OpenWait    time.Duration          `config:"openWait" default:"5m" min:"1ms" max:"24h" doc:"stream: how long a snapshot that is taken up again waits for transactions that are open"`
	Parallel    int                    `config:"parallel" default:"2" min:"1" max:"32" doc:"connections of a snapshot; SQLite has one"`
	ChunkRows   int                    `config:"chunkRows" default:"4096" min:"1" max:"32768" doc:"rows of a chunk of a snapshot"`
	ChunkBytes  sdk.ByteSize           `config:"chunkBytes" default:"4MiB" doc:"bytes of a chunk of a snapshot, about"`
	PollColumn  string                 `config:"pollColumn" doc:"poll: time of change or growing number, in all tables"`
	PollColumns map[string]string      `config:"pollColumns" doc:"poll: that column by schema.table, where it is another one"`
	Interval    time.Duration          `config:"interval" default:"1s" min:"1ms" max:"24h" doc:"poll: pause between two looks while nothing comes"`
	Overlap     time.Duration          `config:"overlap" default:"30s" min:"0s" max:"24h" doc:"poll: how far back rows are read again, by a column of times"`
	OverlapRows int64                  `config:"overlapRows" default:"1000" min:"0" max:"100000" doc:"poll: the same by a column of numbers: from the last number less so many"`
	Where       map[string]string      `config:"where" doc:"snapshot, poll: SQL condition on the rows, by schema.table"`
	Columns     map[string]sdk.Strings `config:"columns" doc:"snapshot, poll: columns to read, by schema.table; the key is always read"`
}

// Validate checks what concerns more than one option.
func (c *ReaderConfig) Validate() []sdk.Problem {
	var p []sdk.Problem
	scheme, _, _ := strings.Cut(c.URL.Reveal(), "://")
	if c.Mode == "stream" {
		if !postgres(scheme) {
			p = append(p, sdk.Problem{Path: "mode", Found: "stream", Expected: "snapshot", Message: "the log of " + nameOf(scheme) + " is not read by this plugin; the plugin mysql reads that of MySQL and MariaDB"})
		}
		if len(c.Where)+len(c.Columns) > 0 {
			p = append(p, sdk.Problem{Path: "where", Message: "the log has all rows and columns: where and columns are for modes snapshot and poll; filter in the mappings of the writer"})
		}
		pc := c.stream()
		p = append(p, pc.Validate()...)
	}
	if c.Mode == "poll" && c.PollColumn == "" && len(c.PollColumns) == 0 {
		p = append(p, sdk.Problem{Path: "pollColumn", Expected: "a column", Message: "mode poll needs to know by which column rows are new"})
	}
	if _, err := scan.NewFilter(c.Tables); err != nil && c.Mode != "stream" {
		p = append(p, sdk.Problem{Path: "tables", Found: strings.Join(c.Tables, ", "), Expected: "schema.table with * and ?, ! in front to exclude", Message: err.Error()})
	}
	return p
}

func postgres(scheme string) bool { return scheme == "postgres" || scheme == "postgresql" }

func nameOf(scheme string) string {
	switch scheme {
	case "mysql":
		return "MySQL"
	case "mariadb":
		return "MariaDB"
	case "sqlite":
		return "SQLite, which has none,"
	}
	return "another source"
}

func (c *ReaderConfig) stream() pglog.Config {
	return pglog.Config{
		URL: c.URL.Reveal(), Tables: c.Tables, Start: c.Start, Slot: c.Slot, Publication: c.Publication, NoStreaming: !c.Streaming, SpillDir: c.SpillDir, DDL: c.DDL,
		Parallel: c.Parallel, ChunkRows: c.ChunkRows, ChunkBytes: int(c.ChunkBytes), SlotWait: c.SlotWait, OpenWait: c.OpenWait, Switches: pglog.FromEnv(),
	}
}

// source is what every reader of this plugin is.
type source interface {
	sdk.Reader
	sdk.Discoverer
	sdk.Releaser
	sdk.RangeReader
	sdk.KeyReader
	sdk.Snapshotter
}

// openReader chooses the dialect by the scheme of the url.
func openReader(env sdk.Env, cfg ReaderConfig) (source, error) {
	if cfg.Mode == "stream" {
		pc := cfg.stream()
		pc.Log = env.Log
		return pglog.New(pc)
	}
	db, parallel, err := database(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Mode == "poll" {
		if pg, ok := db.(*pgscan.Database); ok {
			pg.Apart = true
		}
		return unplaced{poll.New(db, poll.Config{
			Column: cfg.PollColumn, Columns: cfg.PollColumns, Interval: cfg.Interval, Overlap: cfg.Overlap, Numbers: cfg.OverlapRows, Rows: cfg.ChunkRows, Bytes: int(cfg.ChunkBytes),
		})}, nil
	}
	return unplaced{scan.NewReader(db, scan.Options{Parallel: parallel, Rows: cfg.ChunkRows, Bytes: int(cfg.ChunkBytes)})}, nil
}

// unplaced is a reader whose source has no log: rows read for themselves have no
// place in it.
type unplaced struct{ copier }

// copier is a reader of a source without a log.
type copier interface {
	sdk.Reader
	sdk.Discoverer
	sdk.Releaser
}

// Without names the capabilities of the manifest that the reader lacks.
func (unplaced) Without() []string {
	return []string{manifest.CanReadRange, manifest.CanReadKeys, manifest.CanSnapshot}
}

// ReadRange is refused.
func (unplaced) ReadRange(context.Context, sdk.Range, *batch.Builder) (sdk.Placed, error) {
	return sdk.Placed{}, errUnplaced
}

// ReadKeys is refused.
func (unplaced) ReadKeys(context.Context, *batch.Schema, [][]byte, *batch.Builder) (sdk.Placed, error) {
	return sdk.Placed{}, errUnplaced
}

// Snapshot is refused.
func (unplaced) Snapshot(context.Context, sdk.SnapshotRequest) (sdk.SnapshotStatus, error) {
	return sdk.SnapshotStatus{}, errUnplaced
}

var errUnplaced = sdk.Faultf(sdk.CodeUnimplemented, "a source without a log has no place for rows beside the others")

func database(cfg ReaderConfig) (db scan.Database, parallel int, err error) {
	f, err := scan.NewFilter(cfg.Tables)
	if err != nil {
		return nil, 0, sdk.Faultf(sdk.CodeInvalidConfig, "tables: %v", err)
	}
	sel := scan.Selection{Filter: f, Where: cfg.Where, Columns: map[string][]string{}}
	for t, c := range cfg.Columns {
		sel.Columns[t] = c
	}
	text := cfg.URL.Reveal()
	scheme, rest, _ := strings.Cut(text, "://")
	switch {
	case postgres(scheme):
		db, err = pgscan.NewDatabase(text, sel)
	case scheme == "mysql" || scheme == "mariadb":
		db, err = myscan.NewDatabase(text, sel)
	case scheme == "sqlite" && rest != "" && !strings.HasSuffix(rest, "/"):
		path, perr := filepath.Abs(rest)
		if perr != nil {
			return nil, 0, perr
		}
		// One connection sees one moment.
		cfg.Parallel = 1
		db, err = litescan.NewDatabase(path, sel)
	default:
		if _, perr := url.Parse(text); perr != nil {
			scheme = "that is none"
		}
		return nil, 0, sdk.Faultf(sdk.CodeInvalidConfig, "url: found scheme %q, expected postgres, mysql, mariadb or sqlite", scheme).
			Suggest("postgres://user:password@host:port/database, mysql://…, mariadb://…, sqlite:///absolute/path")
	}
	return db, cfg.Parallel, err
}
