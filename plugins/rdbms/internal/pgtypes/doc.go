// Package pgtypes turns values of PostgreSQL, as the server prints them, into
// values of a batch.
//
// Values come as text, both from the log and from SELECT: the text form exists
// for each type there is, extensions included, and is exact under the settings
// of Session. What has a logical type becomes one; everything else travels as
// its text, with the type named.
//
// Invariants:
//
//   - A value is never bent: one that the logical type cannot hold (the year
//     250000) travels raw.
//   - The same text gives the same value whether it came from a snapshot or from
//     the log.
//   - Put boxes nothing and allocates for arrays only.
package pgtypes
