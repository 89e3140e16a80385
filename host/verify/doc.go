// Package verify compares source and target of a running task, key by key, and
// mends what differs.
//
// Rows of the source are read beside the stream by the task's own reader, in chunks
// of its key order, and run through the task's transforms and mappings; rows of the
// target are read back by its writer in the layout that the mappings give, and both
// are brought to one normal form. A chunk whose sums are equal is done. Of one whose
// sums differ the keys that differ are looked at again, each in these steps:
//
//  1. A watch on the key begins: the pipeline says whether the stream changes it.
//  2. The source's row is read; the reader says by which position the stream has
//     delivered all that the row shows.
//  3. The target has caught up with that position.
//  4. The target's row is read.
//
// A key that the stream did not change between 1 and 4 is compared exactly: what the
// target lacks or has otherwise then is no lag. Others are tried again, up to a
// bound, and are counted as unsettled after it.
//
// Invariants:
//
//   - What is named as different is different whatever the load is.
//   - A repair writes rows between two transactions of the stream, behind the place
//     that the rows show, and leaves out keys that the stream has changed since: it
//     never puts an older row over a newer one.
//   - State holds all that is needed to go on after any process was killed.
//
// Life cycle: New, then Run until it returns; Run of a State that was saved goes on
// with the chunk after the last one saved.
//
// What the package does not do: it compares no tables without a key, and does not
// lock anything.
package verify
