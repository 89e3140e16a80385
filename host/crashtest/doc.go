// Package crashtest kills the real daemon, its plugins and its WASM child, and
// shows that the target is equal to the source nevertheless. It holds tests only.
//
// The programs are built once, with the tag faults, which lets the environment arm
// fail points and switch single checks off. What a target has to hold comes from
// the tables recorded beside the binary logs of examples/quickstart, or from a
// model of generated transactions; targets are read with SQLite directly, without
// code of the connector.
//
//   - points_test.go lists the fail points that the source has, so that a new one
//     cannot be left out, and kills at each of them.
//   - random_test.go kills a random process at a random moment.
//   - servers_test.go does that at real servers; sessions_test.go ends sessions in
//     COMMIT, kills the writer at each of its fail points, and kills the server.
//   - twin_test.go runs one task from two data directories against one target.
//   - rewind_test.go puts a target back to an older copy.
//   - unequal_test.go leaves two writers at different places inside one transaction.
//
// The last three run with single checks switched off as well, and fail when the
// rows do not differ then. After every death the tests look whether a process of
// the daemon is left, and whether the position at the target went back.
//
// DATALINK_CRASH_ROUNDS is the number of random rounds (40), DATALINK_CRASH_SEED
// the seed they begin with, which the test prints.
package crashtest
