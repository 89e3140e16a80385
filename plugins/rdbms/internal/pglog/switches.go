package pglog

// Switches turn single safeguards off, so that a test can show what each of them
// prevents. The zero value has all of them on; only a build with the tag "faults"
// can have another, see FromEnv.
type Switches struct {
	MemberOff  bool // changes that a chunk of a snapshot holds already are delivered again
	FlushOff   bool // what was received is confirmed, whether or not it is durable
	AbortOff   bool // changes of subtransactions that were rolled back are delivered
	VisibleOff bool // a snapshot is taken at once, whatever is still open
}
