package sdk

import "context"

// Snapshotter is implemented by readers that can take tables anew while their
// stream runs: they weave the rows into it.
type Snapshotter interface {
	// Snapshot does what is asked for and returns how far the snapshots are. Tables
	// are accepted once that is stored with the progress, so that a restart does not
	// lose them; until then the call waits, as long as ctx lets it. It may come at
	// any time after Open, beside all other calls.
	Snapshot(ctx context.Context, q SnapshotRequest) (SnapshotStatus, error)
}

// SnapshotRequest says which tables to take anew: names or patterns as the
// reader's configuration has them. Without any the status alone is asked for.
type SnapshotRequest struct {
	Tables        []string
	Pause, Resume bool // stop reading rows after what is being read; go on
}

// SnapshotStatus is how far the snapshots of a reader are.
type SnapshotStatus struct {
	Accepted      []string // tables that the request named
	Paused        bool
	RowsPerSecond float64
	Tables        []TableSnapshot
}

// TableSnapshot is how far the snapshot of a table is.
type TableSnapshot struct {
	Table    string
	Phase    string // pending, running, done
	Rows     uint64 // handed over
	Estimate uint64 // that the source believes the table has; 0 = unknown
}
