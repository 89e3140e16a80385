//go:build faults

package reader

import (
	"os"
	"strings"
)

// FromEnv reads DATALINK_SWITCH, names separated by commas.
func FromEnv() Switches {
	var s Switches
	for name := range strings.SplitSeq(os.Getenv("DATALINK_SWITCH"), ",") {
		switch name {
		case "hbase-answer-early":
			s.AnswerEarly = true
		case "hbase-first-cells":
			s.FirstCells = true
		}
	}
	return s
}
