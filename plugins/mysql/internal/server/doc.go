// Package server is a connection to a MySQL or MariaDB server: login, statements
// with unconverted results, and the bytes of the protocol for what streams (dumps
// of the binary log, rows of snapshots).
//
// Invariants:
//
//   - A connection is never made anew behind the caller's back: what it set in the
//     session holds as long as the Conn does.
//   - Every wait is bounded by its context and ends when that does; the connection
//     is unusable then, as its answer would be taken for that of the next call.
//   - A password is sent in the clear over TLS or a Unix socket only.
//
// Life cycle:
//
//  1. Dial connects to one address and logs in.
//  2. Exec, Query and Stream run statements; WriteCommand and ReadPacket, or Read,
//     are the protocol itself.
//  3. Close says goodbye, within a second.
//
// A Conn is not safe for concurrent use, except Close.
package server
