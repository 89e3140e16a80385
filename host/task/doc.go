// Package task runs one task on one worker: it takes the task in the
// coordination store, claims the targets, runs the pipeline and gives the task up
// again, whatever fails on the way.
//
// Step is the life cycle as a pure function. Runner performs the effects that it
// asks for and feeds back what came of them. Store, connectors, pipeline, audit
// and clock are behind small interfaces.
//
//	waiting ─► taking ─► starting ─► claiming ─► opening ─► running ─► draining ─► closing ─► ended
//	   ▲          │          ▲        │    ▲                    │                     │        paused
//	   └──held────┘          │        └raise (a target          └──fault, lost, ──────┤        failed
//	                      retrying     holds a higher epoch)       fenced             │        fenced
//	                         ▲                                                        │
//	                         └───────────── retryable fault ──────────────────────────┘
//
// Invariants:
//
//   - Nothing is started, claimed or opened before the take, and nothing at all
//     after the session was lost.
//   - After the epoch was raised every writer is claimed again.
//   - The task is released only when all connectors are closed or killed, so that
//     the next execution never meets a live one of this.
//   - A taken task always ends with the journal entry "ended" and a release, however
//     it ends. The entry is written also by an execution that was fenced.
//   - A stop that outlasts the grace period kills.
//
// Life cycle of a Runner: New, Run once (it returns when the task has ended here),
// Stop at any time.
//
// Fail points, in order (package failpoint; see FailPoints):
//
//	task.look      the status node is about to be read
//	task.taking    the store is about to be asked for the task
//	task.taken     status node, epoch and journal entry are there
//	task.started   the connectors run
//	task.audited   predecessors are closed
//	task.claiming  before each writer's claim
//	task.claimed   after each writer's claim
//	task.raised    the epoch was raised, no writer claimed again yet
//	task.opening   before the pipeline, all writers claimed
//	task.opened    the reader has opened
//	task.stopping  reading is about to stop
//	task.drained   the pipeline has returned
//	task.closed    the connectors are closed
//	task.ended     the end is in the journal, the status node still there
//	task.released  the status node is gone
//
// What the package does not do: it assigns no tasks to workers, restarts no
// execution that ended (a daemon does, as policy says), and knows no plugin.
package task

// FailPoints are the fail points of a task's life cycle, in order.
var FailPoints = []string{
	"task.look", "task.taking", "task.taken", "task.started", "task.audited", "task.claiming", "task.claimed", "task.raised",
	"task.opening", "task.opened", "task.stopping", "task.drained", "task.closed", "task.ended", "task.released",
}
