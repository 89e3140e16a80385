// Package reference holds three writers in memory, one for each level: a
// transactional one with lanes, unique and foreign keys, a versioned one with
// cells and tombstones, and an idempotent one. They show that the contract
// carries all three, and they are the targets of the SDK's own tests.
//
// A Database or Cells outlives its writers, as a server outlives its clients: a
// new writer on the same one is a restarted plugin.
//
// Invariants of the transactional writer:
//
//   - Within a segment it writes in an order of its own (Database.Shuffle), so
//     that an order that a segment must not rely on shows.
//   - Unique and foreign keys are checked change by change.
//   - A row or value that another open transaction has written is locked: the
//     later one gets a retryable fault, as from a deadlock.
//
// Life cycle: NewDatabase, NewTransactional for each "process", Claim, then what
// the engine calls; Rows and Progress read what became of it. Hook lets a test
// fail any call; Copy and Restore put an older state back.
//
// What it does not do: it keeps nothing on disk and knows no SQL.
package reference
