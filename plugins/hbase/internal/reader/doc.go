// Package reader reads tables of HBase as rows: a scan of what is there, then every
// change, which HBase's own replication brings.
//
// Invariants:
//
//   - The peer is there before the scan begins, and disabled until its last row was
//     handed over: the source keeps every change meanwhile, and no change is given
//     before a row of the scan.
//   - A source gets its answer when all that it sent is durable at the writers. What
//     was not answered comes again, to this reader or to its successor.
//   - A change is given as the row is now: it is read again, after the change and
//     before any later one is given. So every image that is handed over is at least
//     as new as the one before it.
//
// Life cycle of a Reader:
//
//  1. Open listens, registers in ZooKeeper under a parent of its own, and adds the
//     peer, or finds it.
//  2. Next gives the scan, table by table, with how far it came as reader state.
//  3. The peer is enabled, and Next gives what sources ship.
//  4. Durable answers sources. Close takes the registration away first, so that
//     sources wait without holding a thread. Release removes the peer.
//
// Positions count what was handed over; they order, and name no place in HBase,
// which keeps for the peer what it did not answer.
package reader
