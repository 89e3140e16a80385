// Command mask-go is a transform as a WebAssembly module. README.md shows how it
// is built and configured; package mask is what it does.
package main
