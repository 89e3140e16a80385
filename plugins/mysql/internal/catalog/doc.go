// Package catalog reads what a server knows of its tables: their layouts at an
// exact place of the log, and what of them the log will not hold.
//
// Invariants:
//
//   - A layout that Read returns is the table's at the position beside it: both
//     are read while this package holds a metadata lock on the table, which no
//     schema change gets past. The lock is that of an open transaction which read
//     no row; statements on rows never wait for it.
//   - A schema change that waits for such a lock waits no longer than the read;
//     one that is under way is waited for, and the read starts over.
//   - Layouts come from SHOW CREATE TABLE through the parser that reads statements
//     of the log. One that it refuses is an error that names the table.
//
// What it does not do: it changes nothing at the server, and knows nothing of the
// time before it read.
package catalog
