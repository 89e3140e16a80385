// Package config reads task files: YAML with one task a document.
//
// Invariants:
//
//   - Everything that is wrong in a set of files is reported at once, each with
//     file, line, column, what was found and what was expected.
//   - Unknown keys, wrong types and duplicate keys are errors, never ignored.
//   - Secrets (${env:NAME}, ${file:/path}) stay as written in Task; Resolve reads
//     them, for the moment at which they are handed to a connector. Conceal takes
//     them out of what the connector says.
//
// Life cycle:
//
//  1. Parse or Load returns tasks and problems.
//  2. A connector's own problems with its options come by path; Block.At turns
//     them into places in the file.
//  3. Block.Resolve gives the options as JSON for one instance.
//
// What it does not do: it starts no connector and opens no store. Whether a
// connector is installed is the caller's knowledge, reported through Ref.At.
package config
