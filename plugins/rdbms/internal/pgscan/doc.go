// Package pgscan reads tables of PostgreSQL in chunks: the Source of package scan.
//
// With a snapshot's name all sessions read under that snapshot, so that all
// chunks of all tables show one moment. Without one, the first session of a
// Source exports the snapshot it gets and the others join it.
//
// Invariant: a session is one transaction, repeatable read and read only.
package pgscan
