// Package batch is the packed format in which row changes travel between
// connectors, the host and WASM modules: one byte block, encoded by
// appending, decoded in place.
//
// The byte layout is fixed in sdk/PROTOCOL.md, section "Block". The package
// uses the standard library alone, so that a WASM guest stays small.
//
// Invariants:
//
//   - A block is self-delimiting and versioned; every length in it is checked
//     against the bytes that are really there before anything is allocated.
//   - A schema is named by its id. Its definition travels in the block in which
//     the id is first used on a stream; a Registry keeps it for later blocks.
//   - Events keep the order of the source. Each lies in exactly one transaction
//     entry and carries its ordinal, the count of changes before it in its
//     source transaction.
//   - A decoded Event, Image or Value refers to the block's bytes: it is valid
//     for as long as these are neither changed nor reused.
//
// Life cycle of a block:
//
//  1. NewBuilder, then for each transaction BeginTx, rows and other events, EndTx.
//  2. Finish returns the bytes; Reset makes the Builder ready for the next block.
//  3. Decode checks the envelope; Event and Image.Values read rows.
//
// The package does not merge, order, map or convert: that is done by the
// delivery engine, the host and the connectors.
package batch
