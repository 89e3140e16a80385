// Package pglog reads the changes of a PostgreSQL database from its logical
// replication log, and before that a snapshot that fits to it.
//
// Invariants:
//
//   - Only what has committed is delivered, in the order of commit records.
//     Transactions that the server streams before they commit are spilled.
//   - A position is the LSN before which all commit records are done; inside of a
//     transaction it is the LSN of its commit record and an ordinal. The ordinal of
//     a change does not depend on what the reader knew of the table before.
//   - The server is told that it may forget log only up to what Durable has named.
//   - Every row of a snapshot is placed in the log by membership: a change is left
//     out if and only if its transaction is in the snapshot of the row's chunk.
//   - What the log cannot serve any more, or never had, is an error that says so;
//     the server's habit of starting later than it was asked to is never followed.
//
// Life cycle:
//
//  1. New checks the configuration; Check looks at server, rights and tables.
//  2. Open makes the publication and finds out whether the slot can serve the
//     least of the points.
//  3. Next makes the slot, delivers chunks (handover.go) and then transactions
//     (apply.go) that a goroutine receives (pump.go).
//  4. Durable lets the server forget; Close leaves slot and publication in place,
//     Release drops both.
package pglog
