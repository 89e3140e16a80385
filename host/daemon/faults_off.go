//go:build !faults

package daemon

import (
	"time"

	"github.com/datalink-go/datalink/coordination"
)

// What only a build with the tag faults can do, see faults_on.go, is off.

type faults struct{}

func (*faults) failPoints(string) []string { return nil }

func pluginEnv() []string { return nil }

func noSkip() bool { return false }

func switched(string) bool { return false }

func splitAt() uint64 { return splitRecords }

func blockEvents() uint64 { return 0 }

func wallClock() coordination.Clock { return coordination.System{} }

func stopGrace(d time.Duration) time.Duration { return d }
