// Package postgres writes to a PostgreSQL database at the level "transactional":
// rows and progress in one transaction, in which the write of the progress is the
// fence.
//
// Invariants:
//
//   - A session that writes holds the advisory lock of its lane before it looks
//     at its progress row. The lock belongs to the session: one that was lost is
//     replaced by a new one with a new lock, which ends what is left of the old.
//   - A claim ends all sessions that hold a lock of its writer before it reads
//     progress. What they had under way is rolled back or, where the commit had
//     begun, part of what the claim reads.
//   - The count of rows that the fence matched is read before anything is sent
//     that could commit; all answers are read before COMMIT is sent.
//   - Schema changes run inside the fenced transaction.
//   - A value is stored as it is or by the policy for values that do not fit.
//     What PostgreSQL would round, cut or pad is looked at before it is sent.
//   - Identifiers pass through quote, and every table is named with its schema.
//
// Life cycle of a Writer:
//
//  1. New; Check looks at the server and writes nothing.
//  2. Claim makes the bookkeeping tables, ends earlier sessions, takes the rows.
//  3. Prepare makes a table ready; Begin, Fence, Apply, Commit move rows, one
//     session a lane; Settle asks for the outcome of a commit whose answer was
//     lost.
//  4. Close. Release, at some later time, gives the task's rows up.
//
// What it does not do: it neither merges nor orders changes, pools no
// connections, and works through no proxy that shares sessions.
package postgres
