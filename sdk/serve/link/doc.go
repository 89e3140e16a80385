// Package link is what both ends of the socket between the host and a plugin
// process share: the handshake, the codec that carries messages of package wire
// through gRPC, the check of the peer, mutual TLS, and faults as gRPC statuses.
//
// Invariants:
//
//   - Each side lets in one peer alone: the process it knows, by pid and uid as
//     the kernel reports them (unix(7), SO_PEERCRED).
//   - No secret is passed in arguments or environment: the keys of mutual TLS
//     travel in the Hello on the plugin's standard input.
//   - A message costs one copy on each side.
//
// Connector authors need only package serve.
package link
