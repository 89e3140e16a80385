// Package clustertest runs real daemons on a real ZooKeeper ensemble and takes
// workers and servers away from under them.
//
// Invariants: every process that a test starts ends with it; targets are read by
// another driver than the connector's; what a test waits for is a state.
//
// What it does not do: it does not test the store's calls (coordination/zookeeper)
// or assignments (host/cluster).
package clustertest
