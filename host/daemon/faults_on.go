//go:build faults

package daemon

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/sdk/failpoint"
)

// failPoints returns what DATALINK_FAILPOINT holds for an instance of a plugin. The
// host's own are armed by the variable itself; those of plugins travel with their
// configuration. INSTANCE@NAME is for that instance alone, NAME for all.
func failPoints(instance string) []string {
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

// pluginEnv passes on the switches that turn single checks off.
func pluginEnv() []string {
	if v := os.Getenv(switches); v != "" {
		return []string{switches + "=" + v}
	}
	return nil
}

const switches = "DATALINK_SWITCH"

// noSkip is the host's part of the switch skip-off: writers get what they hold.
func noSkip() bool { return slices.Contains(strings.Split(os.Getenv(switches), ","), "skip-off") }

// splitAt lets tests cut small transactions, and blockEvents make small blocks.
func splitAt() uint64 { return number("DATALINK_SPLIT_RECORDS", splitRecords) }

func blockEvents() uint64 { return number("DATALINK_BLOCK_EVENTS", 0) }

func number(env string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(env), 10, 64); err == nil && n > 0 {
		return n
	}
	return otherwise
}
