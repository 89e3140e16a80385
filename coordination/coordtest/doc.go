// Package coordtest is the suite that every coordination store passes, and the
// mutants that show that the suite can fail.
//
// A store's test calls Run with a function that makes a fresh Subject, and
// RunMutants with the same function. A Subject comes with hooks for what a store's
// own interface must not offer: ending a session from outside, leaving the nodes
// of a process that is gone, putting back an older copy. A hook that is nil skips
// the checks that need it, by name.
package coordtest
