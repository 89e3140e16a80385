// Package hopbench measures what it costs to bring rows from a plugin process to
// the host: CPU time of both processes for each row, from the values in the
// plugin to every value read in the host.
//
// It compares the packed blocks of the project's own stream with rows as protobuf
// messages over gRPC in the same go-plugin process model, with the same windows
// and buffers: one message a row on a stream, and, for what batching alone does,
// the same messages put together to one of the batch's size.
//
// The plugins are this very program, started again: a main or TestMain that
// calls Measure calls Child first.
package hopbench
