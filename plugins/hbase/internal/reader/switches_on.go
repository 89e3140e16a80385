//go:build !faults

package reader

// FromEnv returns no switches: they need the build tag faults.
func FromEnv() Switches { return Switches{} }
