// Package sqlite writes to a SQLite file at the level "transactional": rows and
// progress in one transaction, in which the write of the progress is the fence.
//
// Invariants:
//
//   - Everything that a claim guards (rows, progress, schema changes) runs after
//     BEGIN IMMEDIATE on one pinned connection, after the claim was found in
//     datalink_progress in that same transaction. A connection that was lost or
//     whose file was replaced is a new one, and the check decides on what it finds.
//   - SQLite has one writing transaction at a time. Lanes wait for one another in
//     Begin, in this process on a semaphore, among processes on SQLite's lock.
//   - A value is stored as it is or not at all: the declared types are chosen so
//     that SQLite's type affinity converts nothing; the mapping is in README.md.
//   - Identifiers pass through quote, everywhere.
//
// Life cycle of a Writer:
//
//  1. New; Check looks at the path, writes nothing.
//  2. Claim opens the connection, creates the bookkeeping tables, takes the rows.
//  3. Prepare makes a table ready; Begin, Fence, Apply, Commit move rows; Settle
//     asks for the outcome of a commit whose answer was lost.
//  4. Close. Release, at some later time, gives the task's rows up.
//
// What it does not do: it neither merges nor orders changes, opens no second
// writing connection, and follows no foreign keys (PRAGMA foreign_keys is off).
package sqlite
