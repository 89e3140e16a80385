// Package writer writes rows into HBase tables at the level `versioned`: each cell
// carries the version of its change, so that of all writes of a cell the newest
// change wins, whenever and however often it arrives.
//
// Invariants:
//
//   - A value and a tombstone of one cell never share a version.
//   - A NULL is a column tombstone, a deleted row a tombstone of each family (of each
//     column where the family is shared), both at the change's version. A changed
//     key is the removal of the old row and a whole new one.
//   - Columns that are unchanged or absent are not touched.
//   - Nothing is written at or above the ceiling that the bookkeeping row holds: it
//     is moved first, if epoch and execution in it are still those of the claim.
//   - Apply returns without error only if a server has answered for every row.
//   - A table is written to only if its settings keep tombstones for good, or the
//     configuration says that others are accepted.
//
// Life cycle of a Writer:
//
//  1. Claim reads the bookkeeping row, compares epochs and takes it.
//  2. Prepare finds or makes the table of a schema and plans its columns.
//  3. ApplyAt makes mutations of changes and hands them to the store by region.
//  4. Once a second, and before versions pass the ceiling, the row is checked: an
//     execution that lost it stops. What it wrote is outranked by then.
//
// Files: config.go options, settings.go tables, plan.go columns, encode.go
// mutations, apply.go writing, claim.go bookkeeping, reconcile.go ranges and
// truncation, check.go findings, release.go.
//
// What it does not do: it keeps no positions that anybody resumes from, and merges
// nothing.
package writer
