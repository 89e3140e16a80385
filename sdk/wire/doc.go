// Package wire is the messages between host and connector, coded by hand in the
// subset of the protobuf wire format that sdk/PROTOCOL.md states. It serves both
// carriers, the gRPC socket of a process and the single export of a WASM module,
// and links neither protobuf nor gRPC. The field numbers are those of
// sdk/proto/v1/datalink.proto; a test holds both together. A field that is added has
// a place in the struct, in Append and Decode here, and in that file: the tests of
// this package and of sdk/proto/v1 say which one is missing.
//
// Invariants: an unknown field is passed over; a length is checked against the
// bytes that are there before anything is allocated; a decoded bytes field is a
// view of the input.
package wire
