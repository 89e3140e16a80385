//go:build faults

package reader

import (
	"os"
	"strings"
)

// switchesFromEnv returns the switches that DATALINK_SWITCH names, a comma-separated
// list of names that begin with mysql-. Other names belong to other components.
func switchesFromEnv() Switches {
	var s Switches
	all := map[string]*bool{
		"mysql-whole-off": &s.WholeOff, "mysql-purged-off": &s.PurgedOff, "mysql-foreign-off": &s.ForeignOff,
		"mysql-silence-off": &s.SilenceOff, "mysql-checksum-off": &s.ChecksumOff, "mysql-unknown-off": &s.UnknownOff, "mysql-incident-off": &s.IncidentOff,
		"mysql-statement-off": &s.StmtOff, "mysql-end-off": &s.EndOff, "mysql-prepared-off": &s.PreparedOff, "mysql-undone-off": &s.UndoneOff,
		"mysql-origin-off": &s.OriginOff,
	}
	for _, name := range strings.Split(os.Getenv("DATALINK_SWITCH"), ",") {
		if p := all[name]; p != nil {
			*p = true
		}
	}
	return s
}
