// Package wasm turns a connector into a sandboxed WebAssembly module. The
// author's main package has an empty main and calls Export while it is
// initialised:
//
//	func init() { wasm.Export(sdk.Plugin{Name: "mask", Version: "1.0.0", Transform: sdk.TransformOf(open)}) }
//	func main() {}
//
// and is built with the Go toolchain alone:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o mask.wasm .
//
// On other platforms Export keeps the plugin without effect, so that the code
// builds and its tests run natively. ABI.md is the contract with the host, for
// authors in other languages.
//
// Life cycle of a module:
//
//  1. The host calls _initialize, which runs Export.
//  2. Describe, then Configure, which makes the one instance of the connector.
//  3. TransformSchema for each table, Transform for each block.
//  4. Close, or the end of the process at any moment.
//
// Invariants: calls come one at a time; request and reply buffers belong to the
// module and are used again by the next call; nothing outside of the standard
// library and the SDK's own packages is linked, neither protobuf nor gRPC.
//
// What it does not do: it serves transforms, no readers and writers; there are
// no sockets, files, arguments or environment variables.
package wasm
