// Package sdk is what the author of a connector imports: small interfaces to
// implement and the values that pass through them.
//
// An author writes a Reader, a Writer (one of IdempotentWriter, VersionedWriter,
// TransactionalWriter) or a Transform, wraps it in a Plugin and hands that to
// serve.Main (a process) or to package wasm (a sandboxed module). Batching,
// merging to net effect, lanes, the order Fence → Apply → Commit, credit,
// acknowledgement, retries and supervision come from the SDK and the host.
//
// Life cycle of a connector:
//
//  1. The host reads its manifest and validates the configuration against it.
//  2. The factory makes an instance; Check looks at the store.
//  3. Writers Claim and return their progress points.
//  4. The reader Opens with all points and is asked for Next until io.EOF or a stop.
//  5. Close. Release, at some later time, removes what a task left in the store.
//
// Calls of one value come one at a time, each with a deadline in its context,
// unless a method says otherwise.
//
// What the package does not do: it knows no store, opens no connection and links
// nothing outside of the standard library.
package sdk
