// Package schema keeps the layouts of tables as the statements in the log define
// them. It reads CREATE, ALTER, RENAME and DROP statements with a tolerant
// tokenizer of its own; it is not a parser of SQL.
//
// Invariants:
//
//   - A statement that is not understood never leaves a layout that might be
//     wrong: the tables it touches become unknown.
//   - Layouts are immutable; a change makes a new one with a higher version.
//
// What the log itself says about a table (full row metadata) has precedence over
// these layouts; see package rows.
package schema
