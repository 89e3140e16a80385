//go:build faults

package delivery

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// recordsFromEnv lets tests make small target transactions: DATALINK_TARGET_RECORDS.
func recordsFromEnv(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("DATALINK_TARGET_RECORDS")); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// withEnv adds the switches that DATALINK_SWITCH names, a comma-separated list
// of skip-off, merge-across-wait, lane-wait-off, ties-off, settle-off and watch-off.
// Other names belong to other components.
func (s Switches) withEnv() Switches {
	for _, name := range strings.Split(os.Getenv("DATALINK_SWITCH"), ",") {
		switch name {
		case "skip-off":
			s.SkipOff = true
		case "merge-across-wait":
			s.MergeAcrossWait = true
		case "lane-wait-off":
			s.LaneWaitOff = true
		case "ties-off":
			s.TiesOff = true
		case "settle-off":
			s.SettleOff = true
		case "watch-off":
			s.WatchOff = true
		}
	}
	if s != (Switches{}) {
		fmt.Fprintf(os.Stderr, "delivery: guarantees are switched off: %+v\n", s)
	}
	return s
}
