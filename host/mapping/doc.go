// Package mapping holds the built-in stages of a pipeline: rename tables and
// columns, select columns, filter rows by an expression, add columns, split tables
// and merge them.
//
// Invariants:
//
//   - A rename touches schemas alone; rows are copied as bytes.
//   - A filter sees the row as the source has it. An update that leaves the
//     filter becomes a delete, one that enters it an insert, so that the target
//     holds exactly the rows that pass.
//   - Key columns cannot be left out.
//   - What concerns a whole table is not passed to a target that holds rows of
//     others.
//   - Every output keeps the ordinal of its input.
//
// It does not convert values or evaluate anything for tables that no rule names.
package mapping
