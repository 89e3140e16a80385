//go:build race

package wasmrt

// The race detector's shadow memory is many times what a child may allocate.
const raceDetector = true
