// Package poll reads tables without a log again and again, by a column that grows:
// a time of change or a number that counts up.
//
// Invariants:
//
//   - Rows come in the order of (column, key), so that rows with the same value are
//     never split unseen: a place is a value and a key.
//   - A place is left behind only when the row at it was delivered.
//   - Rows behind the place whose value is within the overlap are read again each
//     time, and delivered when they are not as they were.
//
// What it cannot see: rows that are deleted, rows whose column is NULL, changes
// that leave the column alone, and rows that become visible later than the overlap
// allows. A value is drawn before its transaction commits, so a smaller one may
// appear after a larger one was read.
//
// Life cycle: New, Open, Next for ever, Close.
package poll
