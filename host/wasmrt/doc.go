// Package wasmrt runs transforms that are WebAssembly modules, which nobody has
// to trust: each in a child process of the daemon that can be killed at any
// moment, with a limit of memory and of time for each call. sdk/wasm/ABI.md is
// the contract with the module.
//
//	host  ── socket pair, frames ──  child (ChildMain)  ── alloc, call ──  module
//
// Life cycle:
//
//  1. New makes a Runtime: the cache folder is checked, one thread is kept from
//     which all children are started.
//  2. Open checks the module's digest and puts its bytes in a sealed memfd; the
//     first call starts the child, which takes the bytes from there.
//  3. Describe, Configure, Check, Schema, Apply. A child that dies is started
//     again after a pause, configured as before, and the call is repeated; a
//     call that kills as many children as Config.Deaths says is an error.
//  4. Close ends the child; Runtime.Close ends all and the thread.
//
// Invariants:
//
//   - The child dies with the host: by a parent-death signal and by a pipe.
//   - The module sees no file, socket, argument or variable of the host, and no
//     other module's cache folder.
//   - Nothing uses a result before Verifier has passed it: a transform changes
//     rows, never positions, transactions or the rows of other tables.
//   - An error concerns the one module's task; the host process runs no foreign
//     code.
//
// What it does not do: readers and writers as modules, and the grants they need
// (secrets, state, HTTP, TCP). A module that imports those is refused by name.
package wasmrt
