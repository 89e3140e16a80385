// Package binlogtest writes binary logs, so that tests and benchmarks of the
// reader need no server: whole files, single events that no server at hand writes,
// and damaged ones.
package binlogtest
