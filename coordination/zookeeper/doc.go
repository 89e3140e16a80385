// Package zookeeper is the coordination store of a cluster: a tree of nodes on a
// ZooKeeper ensemble (3.5 or later), shared by all workers.
//
// Invariants:
//
//   - One connection object is one ZooKeeper session for all its life. The client
//     library would carry on with a new session after an expiry; the wire below it
//     refuses that, and the owner dials anew.
//   - Ownership is the session's: a status node is the caller's when its
//     EphemeralOwner is the caller's session, never because of a name in it.
//   - A conditional write is one multi that first checks the epoch node and the
//     status node at the versions that were read with executionId and epoch. Each
//     take and each raise moves the epoch node, so that an old version never fits
//     again, also where a status node was deleted and made anew.
//   - A create whose answer was lost is settled by reading who owns the node. A
//     take that nobody came back for is deleted again (see Config.OrphanAfter).
//   - Reads begin with a sync: what another worker was told is seen.
//   - Every call is bounded by its context and by Config.Call.
//   - The lease counts from when the last answered sync or write was sent. Those
//     reach the leader; a ping may be answered by a follower that has lost it.
//
// Life cycle: Open, use, Close. A session that is lost stays lost: its owner joins
// again. The store's own connection is replaced by itself.
//
// # Layout
//
// All values are JSON. Under the chroot of the URL:
//
//	store                               format, uid, createdAt
//	definitions/NAME                    coordination.Definition
//	tasks/UID/epoch                     {"epoch": n}
//	tasks/UID/status                    coordination.Status, ephemeral
//	tasks/UID/journal/EXECUTION-KIND    coordination.Entry; raised has its epoch behind
//	tasks/UID/progress/WRITER           coordination.Progress without the lists below
//	tasks/UID/progress/WRITER/item-KEY  coordination.Item
//	tasks/UID/progress/WRITER/dead-N    coordination.DeadLetter
//	overlaps/ID                         coordination.Overlap
//	overlaps/ID/RESOLUTION              coordination.Resolution
//	forgotten/NANOSECONDS-WORKER        coordination.Forgotten
//	workers/ID                          coordination.Worker, ephemeral
//
// What the package does not do: it elects no leader and assigns no task (host/cluster
// does, through Board), and it keeps nothing on this machine.
package zookeeper
