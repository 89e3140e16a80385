// Package bench measures what the project promises about its speed and memory
// and prints it, in one run, as ratios to what it replaces: `make bench`.
//
// What is compared runs in turns, round by round, so that a disturbance of the
// machine meets both sides, and each ratio is one of a round; printed are the
// least, the median and the greatest of them. Rows have 20 columns and about
// 310 bytes.
//
// Files are read by processes of their own, whose CPU time is that of the whole
// process tree, see getrusage(2). The children are this very program: a main or
// TestMain that measures files calls Child first.
//
// Life cycle:
//
//  1. Build compiles the plugins, the daemon and the writer of logs into a folder.
//  2. Codec, Hop, Files, Masks, Allocations, Large, Demo, Live, Snapshot and Latency
//     measure one thing each.
//
// What it does not do: it judges nothing. Bounds are held by tests.
package bench
