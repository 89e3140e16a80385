// Package pgcat connects to a PostgreSQL server as a source and reads its
// catalog: which tables there are, their columns, keys and replica identities.
//
// Invariants:
//
//   - Each connection has the settings of pgtypes.Session, so that every value
//     prints the same wherever it is read.
//   - A Table is what one catalog snapshot says. It does not change.
//   - Columns that the server computes itself (GENERATED … STORED) are left out:
//     the log does not hold them.
//
// Errors are faults: connection refused and the like can be tried again, missing
// rights say which.
package pgcat
