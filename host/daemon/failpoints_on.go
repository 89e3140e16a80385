//go:build faults

package daemon

import (
	"os"
	"strings"

	"github.com/datalink-go/datalink/sdk/failpoint"
)

// failPoints returns what DATALINK_FAILPOINT holds: the host's own are armed by the
// variable itself, those of plugins travel with their configuration.
func failPoints() []string {
	var out []string
	for p := range strings.SplitSeq(os.Getenv(failpoint.Env), ",") {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// pluginEnv passes on the switches that turn single checks off.
func pluginEnv() []string {
	if v := os.Getenv("DATALINK_SWITCH"); v != "" {
		return []string{"DATALINK_SWITCH=" + v}
	}
	return nil
}
