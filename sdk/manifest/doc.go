// Package manifest describes a plugin: its name and version, the protocol range
// it speaks, what it can be used as, what its writer promises, which files it
// consists of and what it asks of the operator. It is read by the host, the
// registry and tools, and links the standard library alone.
package manifest
