// Package audit reads a task's journal for executions that ran, or may have run,
// beside another one, and records such overlaps.
//
//   - Predecessors closes executions without an end as "lost" when a successor
//     begins, and records a suspected overlap with each that is not proven dead.
//   - Settle looks again: who is proven dead later gets the entry "dead", and the
//     open record about it is closed.
//   - Late records a certain overlap: a fence, the store, or the status node at the
//     stop told an execution that another one owns its task.
//
// Proof of death is one of: the lock of the execution's data directory is held by
// this process (plugins inherit it) and the TCP user time-out has passed since,
// so that nothing it sent is still on its way; a process of its host has another
// boot id; an operator's word (datalink worker forget).
//
// Invariants: records are created once under an id that follows from both
// executions and the cause, so that a repeated call adds nothing. A record is
// logged, counted and handed to Notify when it is made here.
//
// What it relies on: host names are unique among the machines that share a store.
// A boot id proves nothing between two machines of one name unless both are
// members at that moment.
//
// Repairing the keys of an open window is not done here; the record says which
// command compares them.
package audit
