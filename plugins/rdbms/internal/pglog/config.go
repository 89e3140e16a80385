package pglog

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
)

// Config configures a Reader. Zero values mean the defaults named.
type Config struct {
	URL         string
	Tables      []string      // patterns; none = all
	Start       string        // snapshot (default), latest, position:LSN
	Slot        string        // default: datalink_ and the task's uid
	Publication string        // default: like the slot
	NoStreaming bool          // let the server keep transactions until they commit
	DDL         string        // apply (default), ignore, stop
	Parallel    int           // connections of a snapshot; 2
	ChunkRows   int           // 4096
	ChunkBytes  int           // 4 MiB
	SlotWait    time.Duration // for a slot that another connection uses; 30 s
	OpenWait    time.Duration // for transactions that are open at a snapshot; 5 min
	SpillDir    string        // for transactions that have not committed yet; the system's
	Log         *slog.Logger
	Switches    Switches
}

func (c Config) withDefaults() Config {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&c.Parallel, 2)
	set(&c.ChunkRows, 4096)
	set(&c.ChunkBytes, 4<<20)
	if c.SlotWait <= 0 {
		c.SlotWait = 30 * time.Second
	}
	if c.OpenWait <= 0 {
		c.OpenWait = 5 * time.Minute
	}
	if c.Start == "" {
		c.Start = "snapshot"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// start is where to begin without progress.
type start struct {
	snapshot bool
	at       lsn // 0 = latest
}

func parseStart(s string) (start, error) {
	kind, rest, _ := strings.Cut(s, ":")
	switch {
	case s == "snapshot":
		return start{snapshot: true}, nil
	case s == "latest":
		return start{}, nil
	case kind == "position":
		p, ord, err := parsePlace(rest)
		if err == nil && (ord != 0 || p.step != 0) {
			err = fmt.Errorf("a start position lies between transactions, it has no ordinal")
		}
		return start{at: p.lsn}, err
	}
	return start{}, fmt.Errorf("unknown start")
}

// Validate checks what a configuration file can get wrong.
func (c *Config) Validate() []sdk.Problem {
	var p []sdk.Problem
	if _, err := scan.NewFilter(c.Tables); err != nil {
		p = append(p, sdk.Problem{Path: "tables", Found: strings.Join(c.Tables, ", "), Expected: "schema.table with * and ?, ! in front to exclude", Message: err.Error()})
	}
	if _, err := parseStart(c.Start); err != nil {
		p = append(p, sdk.Problem{Path: "start", Found: c.Start, Expected: "snapshot, latest or position:0/16B3748", Message: err.Error()})
	}
	for _, n := range []struct{ path, name string }{{"slot", c.Slot}, {"publication", c.Publication}} {
		if n.name != "" && !plainName(n.name) {
			p = append(p, sdk.Problem{Path: n.path, Found: n.name, Expected: "up to 63 of a-z, 0-9 and _", Message: "no name of a slot or publication"})
		}
	}
	return p
}

func plainName(s string) bool {
	return len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// names returns the slot and the publication of a task.
func (c *Config) names(taskUID string) (slot, publication string) {
	own := "datalink_" + strings.ReplaceAll(strings.ToLower(taskUID), "-", "")
	if !plainName(own) || taskUID == "" {
		own = "datalink_task"
	}
	slot, publication = own, own
	if c.Slot != "" {
		slot = c.Slot
	}
	if c.Publication != "" {
		publication = c.Publication
	}
	return slot, publication
}
