//go:build !faults

package daemon

// failPoints returns none: only a build with the tag faults passes fail points to
// its plugins.
func failPoints() []string { return nil }

func pluginEnv() []string { return nil }
