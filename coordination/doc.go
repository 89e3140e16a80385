// Package coordination is the store that makes a task run once at a time and
// remembers how far it came: task definitions, the status node and the epoch of
// each task, the progress of writers that keep none themselves, the journal of
// executions, overlap records and the workers that are there.
//
// Invariants that every store keeps and coordtest checks:
//
//   - A task has one status node at most. It belongs to a session and goes with it.
//   - Taking a task creates the status node, raises the epoch and appends the
//     journal entry "started" in one step, or does nothing.
//   - The epoch of a task uid never falls while the store is not put back to an
//     older copy, and no two executions have the same one.
//   - A conditional write names executionId and epoch and takes effect only while
//     the status node carries both and its session lives. Everything in one call
//     is stored, or nothing.
//   - Ends and audit records are created once, never changed and never refused:
//     an execution that lost its task must be able to report.
//   - Release deletes the status node only while it carries the caller's executionId.
//
// Life cycle:
//
//  1. A Store is opened. Definitions, journal and audit can be read and written.
//  2. Join opens a Session for a worker: its lease, its signal of loss.
//  3. Take makes an execution; Raise, SetState, Save, Mark are conditional on it.
//  4. Append writes "ended", Release gives the task up, Close ends the session.
//
// What the package does not do: it decides nothing about tasks (host/task), judges
// no overlap (host/audit) and knows no connector. Positions are the reader's own
// bytes here.
package coordination
