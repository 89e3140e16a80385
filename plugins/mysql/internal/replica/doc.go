// Package replica is a target in memory for tests: it follows the events of a
// reader to the letter and compares what it then holds with the source.
//
// Invariants:
//
//   - It is strict: an insert of a row that is there, an update or delete of one
//     that is not, and a before image that is not the row's are errors. A change
//     that a reader loses or repeats shows at once.
//   - What it cannot know is not compared: the cells of a column that a schema
//     change added or retyped, until a change of the row brings them. Compare says
//     how many there were.
//   - The server is the judge, as in package alltypes.
//
// What it does not do: it keeps no progress and checks no constraints.
package replica
