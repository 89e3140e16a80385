// Package conformance holds the kits that connectors are proven with. That for
// readers (RunReader) opens a reader at every position, for one writer and for
// several. That for writers drives a writer through the delivery engine as a host
// does, kills it between any two of its calls, sends batches twice and in pieces,
// lets late executions write, and compares the target with a model.
//
// Life cycle of a writer's proof:
//
//  1. The author describes the writer as a Subject: how to get an empty store,
//     open a writer on it and read a table back.
//  2. Run (in a Go test) or Check (anywhere) goes through the cases that the
//     writer's level calls for.
//  3. Check's report goes into the plugin's manifest.
//
// Parts: history.go makes random transactions and the model, reader.go sends
// them as a reader and a host would, crash.go kills a writer between two calls,
// scenario.go puts these together, cases.go holds what is not random; readers.go
// and readercases.go are the kit for readers.
//
// What it does not do: it starts no process and injects no network faults.
package conformance
