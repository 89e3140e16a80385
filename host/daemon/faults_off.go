//go:build !faults

package daemon

// What only a build with the tag faults can do, see faults_on.go, is off.

func (s *starter) failPoints(instance string) []string {
	s.armed.Store(instance, true)
	return nil
}

func pluginEnv() []string { return nil }

func noSkip() bool { return false }

func splitAt() uint64 { return splitRecords }

func blockEvents() uint64 { return 0 }
