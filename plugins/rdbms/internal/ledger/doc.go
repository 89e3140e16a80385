// Package ledger decides about progress rows: who may claim a target, what a
// fence that matched no row means, and how a point is written down. It touches
// no database, so that every dialect of the writer shares the same rules and
// they are tested as tables.
//
// Invariants:
//
//   - The claim number of a row only rises, whoever claims it. A row with a
//     lower number than the session's own is an older copy of the target; one
//     with a higher number belongs to a later claim.
//   - Epochs are compared only between executions of one task uid in one store.
//     Those of another store count otherwise, so identity is compared first.
//   - Lane -1 is the writer's own row; lanes 0 to n-1 hold positions.
//
// What it does not do: it takes no locks and runs no statements. The dialect
// reads the rows under a lock, asks here, and writes what it is told.
package ledger
