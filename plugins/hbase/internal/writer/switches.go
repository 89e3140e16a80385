package writer

// Switches turn single guarantees off, so that a test can show what each of them
// prevents. The zero value has all of them on; FromEnv sets them in builds with
// the tag faults alone.
type Switches struct {
	ServerTime bool // the server dates the cells
	NoRowCheck bool // the bookkeeping row is not checked after the claim
	DropFailed bool // rows that a region refused are taken as written
}
