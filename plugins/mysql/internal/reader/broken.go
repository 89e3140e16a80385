//go:build !faults

package reader

// broken reports whether a test takes a guarantee away, which only a build with the
// tag "faults" can do.
func broken(string) bool { return false }
