//go:build !linux

package delivery

func boottime() int64 { return monotonic() }
