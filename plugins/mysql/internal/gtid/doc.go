// Package gtid holds the positions that servers give to transactions: sets of
// MySQL, with tags, and one transaction a domain of MariaDB.
//
// Invariants:
//
//   - A value has one text. Equal values print equally, whatever they were made from.
//   - Gaps stay gaps: 1-102:105-150 does not hold 103.
//   - In a domain of MariaDB sequence numbers rise; who was the server does not
//     decide what a position holds.
//
// The package talks to no server.
package gtid
