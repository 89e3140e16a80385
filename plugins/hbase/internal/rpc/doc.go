// Package rpc is a client of HBase 2.5 and later: calls on regions, tables and
// replication peers, over HBase's own protocol.
//
// The messages are coded by hand in the few fields that are used; field numbers
// are those of the .proto files in the hbase-protocol-shaded jar.
//
// Invariants:
//
//   - Every call ends by its context or by Config.CallTimeout, whichever comes
//     first. A connection on which nothing arrives for that long is given up, so
//     that a stopped server holds nobody.
//   - A call whose region moved, opens, split or merged, whose server stopped or is
//     too busy, is tried again at the region's new place until the context ends.
//     In a batch that is done for each mutation by itself.
//   - A mutation is never answered as done unless a server said so.
//   - A cell that was decoded refers to the bytes of its response, which nobody
//     reuses.
//
// Life cycle of a Client:
//
//  1. Dial looks at the registry: ZooKeeper, or the masters themselves.
//  2. Regions are looked up in hbase:meta when they are first needed, and again when
//     a server says that they are not there.
//  3. Close ends all connections; calls under way return ErrClosed.
//
// Parts: wire.go codes messages, cell.go cells, conn.go is one connection,
// registry*.go finds the cluster, region.go and locate.go find regions, batch.go
// writes, get.go and scan.go read, table.go and peer.go administer.
//
// What it does not do: it does not log in. A place for SASL is Config.Login, which
// gets the raw connection before anything is sent on it.
package rpc
