// Package share lets the readers of several tasks of one worker take the log of one
// server from one dump connection.
//
// Every reader begins with a connection of its own. Where it has caught up, it asks
// the relay of its worker and server for what follows the place it has reached, a
// file and an offset of the very server, gets the same bytes that its own connection
// would have brought, and closes that. Where there is no relay, it becomes one. So
// nothing about positions, failover or filters is different under a relay, and
// whatever goes wrong with one has one answer: a connection of one's own, from the
// reader's own position.
//
// Life cycle of a relay:
//
//  1. Listen takes the name of worker and server, which is an abstract unix socket
//     and so ends with the process that has it.
//  2. Serve copies the packets of a dump into a ring and hands them to subscribers.
//  3. A subscriber that holds the ring up for longer than Patience in all, and every
//     one at an event that is too large for the ring, is cut off.
//  4. The relay ends with its connection, with its reader, or with its process.
//
// What it does not do: it never looks for another server, keeps nothing on disk and
// holds no position of anybody.
package share
