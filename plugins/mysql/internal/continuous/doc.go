// Package continuous writes to real servers at random and checks that a reader
// that is killed all the time delivers all of it: tables of all types, rows and
// schema changes in transactions from many sessions, savepoints, rollbacks and XA.
//
// Invariants:
//
//   - Every statement is one that an application may send; those that the server
//     refuses are left to it.
//   - What a run does follows from its seed, the timing of the machine apart.
//   - At the end the replica is compared with the source by content.
//
// Life cycle: Begin makes the tables, Write keeps sessions busy until its context
// ends; Hold stops them at ends of transactions, and Recover ends what a server that
// was killed had prepared.
package continuous
