// Package reader is the reader of binary logs, in files and from servers: it walks
// the transactions of a log in order and appends them to a batch.
//
// Invariants:
//
//   - Nothing of a transaction is delivered before its end was seen:
//     one that is rolled back, or that the file cuts off, delivers nothing.
//   - A transaction that two phases commit is delivered where it is committed.
//   - A position lies between two transactions, or inside of one by ordinal.
//   - The same log gives the same events with the same ordinals whenever it is
//     read under the same configuration.
//   - What is not understood stops the reader with file, offset and type.
//
// Life cycle:
//
//  1. New checks the configuration; Check looks at the files.
//  2. Open finds the place to start at and the layouts of tables there.
//  3. Next appends transactions, in parts where they are large, until io.EOF.
package reader
