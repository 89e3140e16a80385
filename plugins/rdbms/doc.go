// Command rdbms is the connector for relational databases. It writes at the
// level "transactional": rows and progress in one target transaction, in which
// the write of the progress is the fence. It speaks to MySQL, MariaDB, PostgreSQL
// and SQLite.
//
// Life cycle: serve.Main makes a writer of a Config through open, which chooses
// the dialect by the scheme of the url; everything else is the dialect's. A
// dialect is a package under internal/ whose Writer implements target.Writer; what
// all of them share is internal/ledger (who may claim, what a fence that matched
// nothing means, how a position is written) and internal/target (policies, how a
// table compares with its rows, the guard that skips keys and holds rates).
//
// What it does not do: it reads no changes and merges none, see sdk/delivery.
package main
