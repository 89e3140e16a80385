//go:build faults

package pglog

import (
	"os"
	"strings"
)

// FromEnv returns the switches that DATALINK_SWITCH names, a comma-separated list
// of pg-member-off, pg-flush-off, pg-abort-off and pg-visible-off. Other names
// belong to other components.
func FromEnv() Switches {
	var s Switches
	for _, name := range strings.Split(os.Getenv("DATALINK_SWITCH"), ",") {
		switch name {
		case "pg-member-off":
			s.MemberOff = true
		case "pg-flush-off":
			s.FlushOff = true
		case "pg-abort-off":
			s.AbortOff = true
		case "pg-visible-off":
			s.VisibleOff = true
		}
	}
	return s
}
