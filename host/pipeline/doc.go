// Package pipeline moves blocks from one reader through transforms to one or
// more writers. Each writer has its own progress.
//
// Invariants:
//
//   - Order of durability: data at the target, position, acknowledgement to the
//     reader. The reader hears of a position only after every writer stored it.
//   - Blocks that a writer has not acknowledged stay in the window, so that it is
//     served again from there. A writer that is down for long is detached when it
//     alone fills the window; when it is back the reader is opened again, and
//     coverage spares the others.
//   - Places in the window are found by the bytes of positions, never by
//     comparing them.
//   - A record that cannot be written ends the run, or is set aside by policy;
//     then it guards its key: later changes of that key follow it.
//   - Versions are given once, at hand-over; a block that is sent again carries
//     the same ones.
//
// Life cycle of a run:
//
//  1. A round claims every writer, opens the reader at all points and streams.
//  2. The round ends at the source's end, at a stop, at a fault, or because the
//     reader has to be opened again, which begins the next round.
//  3. At a stop reading ends first; what is in flight is drained.
//
// The package knows no store and parses no position; it decodes rows only in
// built-in stages that need values.
package pipeline
