// Package serve runs a connector as a plugin process:
//
//	func main() {
//		serve.Main(sdk.Plugin{Name: "mysql", Version: "1.0.0", Reader: sdk.ReaderOf(open)})
//	}
//
// The process speaks the protocol of sdk/PROTOCOL.md by gRPC on a unix socket in
// a folder of the host's, and lives no longer than the host.
//
// Invariants:
//
//   - Standard output carries the handshake and is not the connector's: what it
//     prints goes to the host's log.
//   - Only the host's process may connect.
//   - The process ends when its standard input does: the host holds the other end.
//
// Life cycle:
//
//  1. The host starts the program and writes one line to its standard input.
//  2. Handshake: version of the protocol and address of the socket on standard output.
//  3. Calls, see package sdk.
//  4. Close, then the end of the process; SIGTERM does both.
package serve
