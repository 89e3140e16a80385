//go:build faults

package daemon

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/sdk/failpoint"
)

// faults knows which instances were given their fail points.
type faults struct{ armed sync.Map }

// failPoints returns what DATALINK_FAILPOINT holds for an instance of a plugin. The
// host's own are armed by the variable itself; those of plugins travel with their
// configuration. INSTANCE@NAME is for that instance alone, NAME for all. Each
// instance gets them once: what is started again after a fault is to recover.
func (s *faults) failPoints(instance string) []string {
	if _, had := s.armed.LoadOrStore(instance, true); had {
		return nil
	}
	var out []string
	for p := range strings.SplitSeq(os.Getenv(failpoint.Env), ",") {
		only, name, scoped := strings.Cut(p, "@")
		switch {
		case scoped && only == instance:
			out = append(out, name)
		case !scoped && p != "":
			out = append(out, p)
		}
	}
	return out
}

// pluginEnv passes on the switches that turn single checks off, and how many
// changes a target transaction merges.
func pluginEnv() []string {
	var out []string
	for _, name := range []string{switches, "DATALINK_TARGET_RECORDS"} {
		if v := os.Getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

const switches = "DATALINK_SWITCH"

// noSkip is the host's part of the switch skip-off: writers get what they hold.
func noSkip() bool { return switched("skip-off") }

// switched reports whether a check of the host is turned off.
func switched(name string) bool {
	return slices.Contains(strings.Split(os.Getenv(switches), ","), name)
}

// splitAt lets tests cut small transactions, and blockEvents make small blocks.
func splitAt() uint64 { return number("DATALINK_SPLIT_RECORDS", splitRecords) }

func blockEvents() uint64 { return number("DATALINK_BLOCK_EVENTS", 0) }

func number(env string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(env), 10, 64); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// wallClock is the clock of tasks and of the leader. Its wall clock is off by what
// the file DATALINK_CLOCK names says, such as 1h or -90s, for as long as it says so.
func wallClock() coordination.Clock {
	if path := os.Getenv("DATALINK_CLOCK"); path != "" {
		return skewed{path: path}
	}
	return coordination.System{}
}

type skewed struct {
	coordination.System
	path string
}

func (c skewed) Now() time.Time {
	data, _ := os.ReadFile(c.path)
	by, _ := time.ParseDuration(strings.TrimSpace(string(data))) // none while it is written
	return time.Now().Add(by)
}

// stopGrace lets tests shorten the time from a stop to the kill.
func stopGrace(d time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return time.Duration(number("DATALINK_STOP_GRACE_MS", 0)) * time.Millisecond
}
