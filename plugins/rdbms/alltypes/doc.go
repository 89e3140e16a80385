// Package alltypes lists the column types of PostgreSQL with the values at their
// limits, for tests that compare what arrives by one way (the log, a snapshot, a
// target) with what the server itself prints.
//
// Invariants:
//
//   - All cases are columns of one table; a row has a value of each case that has
//     so many, NULL of the others.
//   - Values are literals that the server reads.
//
// Life cycle of a test:
//
//  1. Types makes what the columns need, in the schema public, and Create the table.
//  2. Insert writes all values, under ids that count from first.
//
// What it does not do: it starts no server and prints no values.
package alltypes
