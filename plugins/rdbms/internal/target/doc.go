// Package target holds what the dialects of the writer have in common beside the
// fence (package ledger): the policies, how a table of the target compares with
// the schema of its rows, how a segment's changes are grouped, and Guard, which
// stands in front of a dialect and leaves out keys, holds the rate, counts, and
// rehearses. It runs no SQL.
//
// Invariants:
//
//   - Everything that is wrong with a table is named at once, each with the
//     statement that mends it.
//   - Groups never reach across a segment: only within one is the order free.
//   - Guard changes nothing about the calls of delivery but their number of
//     changes: an index in a RecordError is that of the changes Guard was given.
//
// Life cycle: a dialect describes a table (Table), compares it (Compare), keeps
// the Match it gets in its plan, and splits each segment (Groups). New of Guard
// wraps the dialect's writer once.
package target
