// Package snapshot reads the rows that tables have and weaves them into the
// stream of their changes.
//
// A chunk is read in a consistent snapshot that sees all that the stream has
// delivered when the chunk's window opens (low). It is handed over when the stream
// has delivered all that the snapshot may see (high). Rows whose keys the stream
// changed since the window opened are left out: the stream has brought them, or
// taken them away.
//
// Invariants:
//
//   - Low: on MySQL WAIT_FOR_EXECUTED_GTID_SET of what was delivered, since the
//     dump thread may deliver a transaction before its engine has committed it. On
//     MariaDB the snapshot names its own place in the log (binlog_snapshot_file,
//     binlog_snapshot_position); one that lies before what was delivered is taken
//     again.
//   - High: on MySQL the end of the log after the snapshot was taken. gtid_executed
//     is no upper bound: it is set after the engine has committed. On MariaDB high
//     is low.
//   - The order of keys is the server's alone. A chunk ends at the last key that
//     was read, and the next begins there, by conditions that the server compares.
//   - A schema change of the table, a truncation, or another server voids the
//     windows: their chunks are read again.
//   - Progress is an item of reader state in the same entry as the chunk's rows.
//   - What has no key, and rows of which the stream has but parts, are read at one
//     exact place of the stream, which stands still there.
//   - Nothing is written to the source, and no table is locked.
//
// Life cycle of a Weaver, one for each opening of the reader:
//
//  1. New; Restore gets the state that was stored.
//  2. Start begins to read with the configured number of connections.
//  3. The reader's goroutine calls Row, Changed, Moved and Weave as it goes.
//  4. Close ends the connections.
//
// Parts: session.go, begin.go and stmt.go talk to the server, table.go and range.go
// decide what to read, worker.go reads it into pieces, window.go notes what changes
// meanwhile, weaver.go and emit.go hand over, state.go keeps progress, ondemand.go
// reads single ranges and keys.
package snapshot
