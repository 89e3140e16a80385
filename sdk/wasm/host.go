package wasm

import "time"

// Kinds of metric.
const (
	metricAdd = 0
	metricSet = 1
)

// Now returns the host's wall clock. A transform whose output depends on it
// gives another result when a batch is repeated.
func Now() time.Time { return time.UnixMicro(hostClock()) }

// Add raises the counter of that name, which the host exports with the task and
// the module as labels. Names are lower-case letters, digits and underscores.
func Add(name string, n float64) { hostMetric(metricAdd, name, n) }

// Set gives the gauge of that name a value.
func Set(name string, v float64) { hostMetric(metricSet, name, v) }
