// Package pgout reads the messages of pgoutput, the logical replication protocol
// of PostgreSQL (manual, "Logical Replication Message Formats"), versions 1 and 2.
//
// Invariants:
//
//   - A message is read in place: what is returned refers to its bytes.
//   - Every length is checked against the bytes that are there; what is left over
//     or unknown is an error that names message and place.
//
// It keeps no state: transactions and relations are package pglog's.
package pgout
