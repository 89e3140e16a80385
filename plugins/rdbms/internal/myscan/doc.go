// Package myscan reads tables of MySQL and MariaDB in chunks: the Database of
// package scan.
//
// Values come over the binary protocol, in which numbers are exact, under a
// session in UTC, text in the character set of its column, and become what the
// readers of the binary log make of the same columns.
//
// Each session is one transaction with a consistent snapshot. Sessions do not see
// the same moment: without its log a copy of a database that changes is not of
// one moment.
package myscan
