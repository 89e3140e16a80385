// Package failpoint kills a process at a named place, so that tests can show
// what a crash there leaves behind.
//
// A process started with DATALINK_FAILPOINT=NAME[:COUNT][:stop] sends itself
// SIGKILL (with :stop SIGSTOP) at the COUNT-th Hit of NAME; several of them are
// separated by commas. Without the variable Hit costs one comparison.
//
// Names are dotted, the component first: "writer.fence.before". They stand
// between all steps whose order matters.
//
// What it does not do: it returns no errors and injects no delays. A fault that
// a program can see is a test double's business.
package failpoint
