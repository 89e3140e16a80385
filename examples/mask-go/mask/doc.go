// Package mask is the transform of the module mask-go: it masks the text
// columns it is told to, by stars that keep the length and the last characters,
// or by a keyed hash.
//
// What it does not do: it changes no key and no column that is not text; a table
// where it is told to is refused.
package mask
