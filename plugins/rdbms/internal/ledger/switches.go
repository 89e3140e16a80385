package ledger

// Switches turn single checks of the fence off, so that a test can show what
// each of them prevents. The zero value has all of them on; only a build with
// the tag "faults" can have another, see FromEnv.
type Switches struct {
	EpochOff bool // epoch, execution and claim number are not compared
	ClaimOff bool // the claim number is not compared
	BatchOff bool // the batch number is not compared
	StoreOff bool // store and task uid are not compared
	LocksOff bool // sessions take no locks, so that a claim ends nobody
	CountOff bool // the count of rows that the fence matched is not looked at
}
