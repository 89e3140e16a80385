// Package api is the local HTTP interface of a daemon: JSON under /v1, health and
// metrics beside it.
//
//	datalink task …  ──►  Client  ──HTTP on a unix socket or loopback──►  Handler  ──►  Backend
//
// Backend is what both ends have in common: the daemon implements it, Client
// implements it over HTTP, so that a command runs the same against a daemon and
// against a data directory that no daemon uses.
//
// Invariants:
//
//   - The unix socket lies in the owner-only data directory. Over TCP each request
//     carries a token of the files api.token or api.read.token, and the address is
//     a loopback one unless there is TLS or the operator says otherwise.
//   - What is served is what /v1/openapi.json describes: both come of one table.
//   - Bodies are bounded; unknown fields of a request are errors.
//   - An error is {"error": {"kind", "message", "problems"}}; kinds are a fixed set
//     (see Kind), from which the exit code of a command follows.
//
// What it does not do: authentication of users.
package api
