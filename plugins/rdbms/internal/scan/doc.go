// Package scan reads whole tables in chunks, over several connections, in an
// order that can be gone on with after a restart.
//
// A chunk is what lies between two keys. The planner walks the key of a table
// and finds where each chunk ends; workers read chunks side by side; whoever asks
// gets them in the order of the plan. What a dialect does is behind Source and
// Session.
//
// Invariants:
//
//   - The chunks of a table follow one another without gap or overlap, whatever
//     changes meanwhile: each begins at the key where the one before ends.
//   - A chunk has bounded size: one that would be larger comes in parts, each with
//     bounds of its own.
//   - At most two chunks a connection are in memory.
//   - A table without a key is one run of chunks without bounds, on one connection.
//
// Life cycle of a Run: Start, Next until it returns io.EOF or an error, Close.
package scan
