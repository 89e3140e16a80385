// Package rows decodes table maps and row events straight into a batch.Builder.
//
// A table map and, where the log lacks it, the table's definition give a Layout:
// for each column how its bytes are laid out in the log and what they become. A
// Layout is made once for each distinct table map. An Iter walks the rows of one
// event and appends them.
//
// Invariants:
//
//   - In steady state decoding allocates nothing.
//   - Every length is checked against the bytes that are there. A row that does
//     not fit its table map is an error that names table and column; it is never
//     bent.
//   - A value is exact or raw: text that is not valid in its character set, and
//     values outside of the range of their type, travel as their own bytes with
//     the name of what they are.
package rows
