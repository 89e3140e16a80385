//go:build !wasip1

package wasm

import "time"

// Outside of a module there is no host: logs and metrics go nowhere.

func hostLog(int32, []byte) {}

func hostClock() int64 { return time.Now().UnixMicro() }

func hostMetric(int32, string, float64) {}
