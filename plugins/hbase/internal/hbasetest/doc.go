// Package hbasetest is a model of what HBase does with cells and tombstones, for
// tests: which of them a read shows, and what a major compaction leaves, under each
// of the settings that matter. Tests against a real server hold it to the truth.
package hbasetest
