// Package binlog frames the binary logs of MySQL 5.5 to 9.x and MariaDB 5.5 to
// 11.x (binary log format 4) and decodes the events that are not rows.
//
// Invariants:
//
//   - Offsets are counted from the sizes of events, in 64 bits. The log's own
//     end positions are never used: they are 32 bits wide, and MariaDB writes 0
//     into some.
//   - Whether events end in a checksum is taken from each format description
//     event, and every checksum is checked. The in-use flag is masked first, as
//     the server does.
//   - Nothing is passed over in silence: an event whose type is not known is an
//     error unless its ignorable flag is set.
//
// Life cycle:
//
//  1. Find lists the files of one log, ordered by number.
//  2. Open gives a Scanner of one file; Next yields event after event.
//  3. Index finds where a transaction ends, looking ahead.
//
// The package does not decode rows and knows no schema.
package binlog
