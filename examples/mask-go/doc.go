// Command mask-go is a transform as a WebAssembly module: it masks the text
// columns it is told to, by stars that keep the length and the last characters,
// or by a keyed hash. README.md shows how it is built and configured.
//
// What it does not do: it changes no key and no column that is not text.
package main
