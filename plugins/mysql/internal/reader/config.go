package reader

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/plugins/mysql/internal/snapshot"
	"github.com/datalink-go/datalink/sdk"
)

// Config is the configuration of the reader.
type Config struct {
	Files          sdk.Strings      `config:"files" doc:"binary log files: paths or patterns such as /backup/mysql-bin.*; .gz is read as it is"`
	Address        sdk.Strings      `config:"address" doc:"servers to read from, host:port or the path of a socket; one after the other where one is gone"`
	User           string           `config:"user" doc:"account at the server"`
	Password       sdk.Secret       `config:"password" doc:"its password"`
	TLS            server.TLS       `config:"tls" doc:"encryption of the connection"`
	ServerID       uint32           `config:"serverId" doc:"number by which the server knows the reader; left out = derived from the task"`
	Heartbeat      time.Duration    `config:"heartbeat" doc:"how often an idle server says that it is there; after three times as much it counts as dead" default:"2s" min:"100ms" max:"1h"`
	Share          bool             `config:"share" doc:"tasks of one worker that read from the same server by the same account take its log from one connection, as long as they keep up" default:"false"`
	SpoolDir       string           `config:"spoolDir" doc:"folder for transactions above 8 MiB while they arrive; left out = that of the system"`
	Tables         sdk.Strings      `config:"tables" doc:"tables to read, as patterns of database.table; ! excludes; left out = all but the server's own" default:"[]"`
	Start          string           `config:"start" doc:"where to begin when there is no progress: snapshot, earliest, latest, position:… or time:RFC 3339" default:"earliest"`
	Snapshot       snapshot.Options `config:"snapshot" doc:"the rows that tables have at the start"`
	DDL            string           `config:"ddl" doc:"schema changes: pass them on, leave them out, or stop at the first" enum:"apply|ignore|stop" default:"apply"`
	Cascades       string           `config:"cascades" doc:"foreign keys whose actions the log does not hold (MariaDB, MySQL before 9.6): stop, or rely on the target to have the same keys" enum:"stop|accept" default:"stop"`
	IgnoreOrigins  sdk.Strings      `config:"ignoreOrigins" doc:"DataLink tasks, by name, uid or name=uid, whose writes to this server are not read; * = all: for a task in the opposite direction" default:"[]"`
	OnlineChanges  string           `config:"onlineChanges" doc:"tables that gh-ost and pt-online-schema-change make beside one that is read: leave them out and see the swap as a schema change, or take them as tables like others" enum:"recognize|off" default:"recognize"`
	OnPurged       string           `config:"onPurged" doc:"a stored position whose log the server has purged: stop, or go on at the end of the log and take all tables anew" enum:"stop|resnapshot" default:"stop"`
	OnUnknownTable string           `config:"onUnknownTable" doc:"a table whose layout is not known: stop, or read its columns as @1, @2, …" enum:"stop|positional" default:"stop"`
	OnStatement    string           `config:"onStatement" doc:"a change that the log holds as a statement and not as rows: stop, or leave it out" enum:"stop|ignore" default:"stop"`
	IgnoreStmts    sdk.Strings      `config:"ignoreStatements" doc:"tables, as patterns of database.table, whose changes by statement are left out where onStatement is stop" default:"[]"`
	MaxEvent       sdk.ByteSize     `config:"maxEvent" doc:"largest single event, and with it the largest row" default:"1GiB"`
	MaxWindow      sdk.ByteSize     `config:"maxWindow" doc:"largest decompression window of a compressed transaction" default:"64MiB"`
}

// Validate checks what concerns more than one option.
func (c *Config) Validate() []sdk.Problem {
	var p []sdk.Problem
	switch {
	case len(c.Address) > 0 && len(c.Files) > 0:
		p = append(p, sdk.Problem{Path: "address", Found: strings.Join(c.Address, ", "), Expected: "address or files", Message: "a task reads from servers or from files"})
	case len(c.Address) > 0 && c.User == "":
		p = append(p, sdk.Problem{Path: "user", Expected: "an account at the server", Message: "nothing to log in with"})
	case len(c.Address) == 0 && len(c.Files) == 0:
		p = append(p, sdk.Problem{Path: "files", Expected: "paths or patterns of binary log files, or address", Message: "nothing to read is named"})
	}
	p = append(p, c.TLS.Check()...)
	for i, t := range c.Tables {
		if _, err := newPattern(t); err != nil {
			p = append(p, sdk.Problem{Path: fmt.Sprintf("tables[%d]", i), Found: t, Expected: "database.table with * and ?, ! in front to exclude", Message: err.Error()})
		}
	}
	for i, t := range c.IgnoreStmts {
		if p1, err := newPattern(t); err != nil || p1.exclude {
			p = append(p, sdk.Problem{Path: fmt.Sprintf("ignoreStatements[%d]", i), Found: t, Expected: "database.table with * and ?", Message: "not a pattern of tables"})
		}
	}
	if _, err := parseStart(c.Start, len(c.Address) > 0); err != nil {
		p = append(p, sdk.Problem{Path: "start", Found: c.Start, Expected: "earliest, latest, snapshot, position:… or time:2026-01-02T15:04:05Z", Message: err.Error()})
	}
	return p
}

// start is where to begin without progress.
type start struct {
	latest   bool
	snapshot bool
	at       *place // in files
	spot     *spot  // at a server
	since    time.Time
}

func parseStart(s string, live bool) (start, error) {
	kind, rest, _ := strings.Cut(s, ":")
	switch {
	case s == "earliest" || s == "":
		return start{}, nil
	case s == "latest":
		return start{latest: true}, nil
	case s == "snapshot" && live:
		return start{snapshot: true}, nil
	case s == "snapshot":
		return start{}, fmt.Errorf("a snapshot needs a server; files hold changes only")
	case kind == "position" && live:
		p, err := parseLive(rest)
		if err == nil && p.Ordinal != 0 {
			err = fmt.Errorf("a start position lies between transactions, it has no ordinal")
		}
		if err != nil {
			return start{}, err
		}
		at, err := spotOf(p)
		return start{spot: &at}, err
	case kind == "position":
		p, ord, err := parsePlace(rest)
		if err == nil && ord != 0 {
			err = fmt.Errorf("a start position lies between transactions, it has no ordinal")
		}
		return start{at: &p}, err
	case kind == "time":
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02"} {
			if t, err := time.Parse(layout, rest); err == nil {
				return start{since: t}, nil
			}
		}
		return start{}, fmt.Errorf("%q is not a time", rest)
	}
	return start{}, fmt.Errorf("unknown start")
}

// pattern is one of the patterns of tables.
type pattern struct {
	exclude         bool
	database, table string
}

func newPattern(s string) (pattern, error) {
	var p pattern
	s, p.exclude = strings.CutPrefix(s, "!")
	db, table, ok := strings.Cut(s, ".")
	if !ok || db == "" || table == "" {
		return p, fmt.Errorf("not of the form database.table")
	}
	p.database, p.table = db, table
	for _, part := range []string{db, table} {
		if _, err := path.Match(part, ""); err != nil {
			return p, fmt.Errorf("bad pattern")
		}
	}
	return p, nil
}

func (p *pattern) match(db, table string) bool {
	a, _ := path.Match(p.database, db)
	b, _ := path.Match(p.table, table)
	return a && b
}

// filter says which tables are read.
type filter []pattern

func newFilter(tables []string) filter {
	var f filter
	for _, t := range tables {
		if p, err := newPattern(t); err == nil {
			f = append(f, p)
		}
	}
	return f
}

// match reports whether one of the patterns names the table.
func (f filter) match(db, table string) bool {
	for i := range f {
		if f[i].match(db, table) {
			return true
		}
	}
	return false
}

// wants reports whether a table is read: it matches a pattern that includes, if
// there are any, and none that excludes. Without patterns all but the schemas of
// the server itself are.
func (f filter) wants(db, table string) bool {
	included, any := false, false
	for i := range f {
		p := &f[i]
		any = any || !p.exclude
		if p.match(db, table) {
			if p.exclude {
				return false
			}
			included = true
		}
	}
	if any {
		return included
	}
	switch db {
	case "mysql", "sys", "performance_schema", "information_schema":
		return false
	}
	return true
}
