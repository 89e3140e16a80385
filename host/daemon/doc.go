// Package daemon runs the tasks of one data directory: it finds and starts their
// connectors, hands them to host/task, keeps failed ones coming back, and answers
// what commands ask.
//
//	Node ── Serve ──► one run a task ──► task.Runner ──► pipeline
//	  │                    │
//	  └─ api.Backend       └─ connectors: processes, modules, built-in stages
//
// Invariants:
//
//   - A Node holds the lock of its data directory; plugins inherit it.
//   - A task has one run at a time here; an operator's work on its targets
//     (positions, dead letters) is a run of its own, with every target claimed.
//   - Secrets are read when a connector is configured; what connectors say about
//     their configuration is shown without them.
//   - What is started is what plugins.lock or the build says, by digest.
//   - Dead letters of a target that keeps them are copied into the store for show;
//     the target's are the authority.
//
// Life cycle of a Node:
//
//  1. Open takes the lock, opens the store and joins it as a worker.
//  2. RunTask runs one task in the foreground; Serve runs all that are wanted.
//  3. Close drains what runs, within the grace period, and gives the lock back.
//
// What the package does not do: it parses no arguments, prints nothing, and knows
// no other node.
package daemon
