// Package alltypes lists every column type of MySQL 9.7 and MariaDB 10.11 with
// the values at which readers go wrong, for tests that compare what arrives by
// one way (the log, a snapshot, a target) with what the server itself prints.
//
// Invariants:
//
//   - A case is one table, alltypes.NAME (id INT PRIMARY KEY, v TYPE, …); its
//     values are SQL expressions and become rows in their order.
//   - The server is the judge: Query has it print each value in a form that
//     loses nothing, and Text brings a value of package batch into that form.
//   - Same compares the two; floating point numbers are equal when their bits are.
//
// Life cycle of a test:
//
//  1. Create and Insert give the statements for the server's own client.
//  2. Query gives the statement that prints all values; Parse reads the answer.
//  3. Text and Same compare them with the values that came by the way under test.
//
// What it does not do: it starts no server and opens no connection.
package alltypes
