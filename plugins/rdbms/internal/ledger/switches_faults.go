//go:build faults

package ledger

import (
	"fmt"
	"os"
	"strings"
)

// FromEnv returns the switches that DATALINK_SWITCH names, a comma-separated
// list of epoch-off, claim-off, batchno-off, store-off, locks-off and count-off. Other names belong
// to other components.
func FromEnv() Switches {
	var s Switches
	for _, name := range strings.Split(os.Getenv("DATALINK_SWITCH"), ",") {
		switch name {
		case "epoch-off":
			s.EpochOff = true
		case "claim-off":
			s.ClaimOff = true
		case "batchno-off":
			s.BatchOff = true
		case "store-off":
			s.StoreOff = true
		case "locks-off":
			s.LocksOff = true
		case "count-off":
			s.CountOff = true
		}
	}
	if s != (Switches{}) {
		fmt.Fprintf(os.Stderr, "rdbms: checks of the fence are switched off: %+v\n", s)
	}
	return s
}
