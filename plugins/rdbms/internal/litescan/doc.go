// Package litescan reads tables of SQLite files in chunks: the Database of
// package scan.
//
// SQLite has types of values, not of columns: a column's logical type follows from
// its declared type, and a value of another storage class travels raw, named by
// its class. Columns without a declared type travel as native text.
//
// All of a copy is one read transaction on one connection, so that it shows one
// moment.
package litescan
