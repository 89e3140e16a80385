//go:build faults

package writer

import (
	"os"
	"strings"
)

// FromEnv reads DATALINK_SWITCH, names separated by commas.
func FromEnv() Switches {
	var s Switches
	for name := range strings.SplitSeq(os.Getenv("DATALINK_SWITCH"), ",") {
		switch name {
		case "hbase-server-time":
			s.ServerTime = true
		case "hbase-no-row-check":
			s.NoRowCheck = true
		case "hbase-drop-failed":
			s.DropFailed = true
		}
	}
	return s
}
