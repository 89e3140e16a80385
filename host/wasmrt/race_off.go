//go:build !race

package wasmrt

const raceDetector = false
