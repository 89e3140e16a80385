// Package mysql writes to MySQL and MariaDB at the level "transactional": rows and
// progress in one transaction, in which the write of the progress is the fence.
//
// Invariants:
//
//   - A session is one connection, never a pool: a lost one is replaced by a new
//     one that takes its lock and finds the claim in force before it writes.
//   - Every session that writes holds a lock of GET_LOCK that every claim takes: a
//     claim ends the holder, and with it what the holder has sent, before it
//     reads the progress.
//   - Nothing is sent before the answer to what was sent last was read. Several
//     statements go as one packet only where the server abandons the rest of it at
//     the first error, and COMMIT is never in it.
//   - A statement that commits by itself runs on the writer's own session, which
//     holds the writer's lock, and what it is was stored before.
//   - A value is stored as it is or not at all; the session's sql_mode is strict
//     and its time zone UTC, whatever the server's are.
//
// Life cycle of a Writer:
//
//  1. New; Check looks at server, account and tables, and writes nothing.
//  2. Claim opens the writer's session, makes the bookkeeping tables, takes locks
//     and rows.
//  3. Prepare makes a table ready; Begin, Fence, Apply, Commit move rows, each lane
//     on a session of its own; Settle asks for the outcome of a commit whose answer
//     was lost.
//  4. Close. Release, at some later time, gives the task's rows up.
//
// What it does not do: it neither merges nor orders changes, and never connects
// again behind its caller's back.
package mysql
