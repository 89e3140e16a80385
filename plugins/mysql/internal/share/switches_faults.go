//go:build faults

package share

import (
	"os"
	"slices"
	"strings"
)

var switches = strings.Split(os.Getenv("DATALINK_SWITCH"), ",")

var (
	anyPlace = slices.Contains(switches, "share-any-place")
	uncut    = slices.Contains(switches, "share-uncut")
)
