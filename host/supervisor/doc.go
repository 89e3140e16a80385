// Package supervisor runs plugin processes: it starts exactly the bytes that were
// verified, gives a pipeline the process as Source, Sink or Stage, and starts it
// again when it dies.
//
// Invariants:
//
//   - What is executed is what was hashed: a sealed memfd, never a path.
//   - A plugin gets the environment that is listed and nothing of the host's; no
//     secret is in its arguments or environment.
//   - A plugin leads a process group of its own and dies with the host's process,
//     whatever ended that. What it started dies with it.
//   - A stop is bounded: after the grace period the group is killed.
//   - Every call has a deadline.
//   - A call that a plugin's death ended is a *pipeline.DiedError.
//
// Life cycle of a Client (one process):
//
//  1. OpenImage, NewLauncher.
//  2. Launch: start, handshake, check of the peer, Describe.
//  3. Configure, then the calls of its role.
//  4. Close: the connector's Close, then the end of the process group.
//
// A Supervisor makes Clients, one after the other, as its state machine says;
// see Step.
//
// What the package does not do: it bisects no blocks (package pipeline), decides
// nothing about tasks and verifies no signatures (package registry).
package supervisor
