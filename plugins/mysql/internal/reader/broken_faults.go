//go:build faults

package reader

import (
	"os"
	"slices"
	"strings"
)

// broken reports whether DATALINK_SWITCH, a list with commas, names a guarantee that
// is to be broken: mysql-stale-layout (rows are read by the layout that an equal table
// map had before), mysql-layouts-lost (layouts after the first are not stored),
// mysql-covers-off (what the position covers of a transaction is not told) and
// mysql-prepared-lost (where prepared transactions lie is forgotten).
func broken(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("DATALINK_SWITCH"), ","), name)
}
