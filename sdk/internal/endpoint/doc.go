// Package endpoint answers the calls of the protocol with one instance of a
// connector. It is the common part of both carriers, the process (package serve)
// and the WASM module (package wasm), and knows neither: requests and replies are
// messages of package wire, and the two streams are given as functions.
//
// Invariants:
//
//   - One instance of one role; Configure comes once.
//   - Calls of the instance come one at a time, but for Durable, Ping and the
//     streams.
//   - Close ends the streams first and is idempotent.
//
// Life cycle:
//
//  1. New with the plugin.
//  2. Call with Describe and Configure, then with what the role has.
//  3. Read or Write run a stream until its context ends.
//  4. Call with Close.
//
// What it does not do: it neither merges nor orders changes nor talks to a
// target (package delivery), and it sets no policy.
package endpoint
