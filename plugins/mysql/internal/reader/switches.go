package reader

// Switches turn single guarantees of reading from a server off, so that a test can
// show what each of them prevents. The zero value has all of them on; only a build
// with the tag "faults" can have another, see switchesFromEnv.
type Switches struct {
	WholeOff    bool // reading goes on behind a transaction of which a part had come
	PurgedOff   bool // what the server has purged counts as read
	ForeignOff  bool // reading begins at a server that never had the position
	SilenceOff  bool // a peer that is silent is waited for
	ChecksumOff bool // checksums are not looked at
	UnknownOff  bool // events of unknown types are passed over
	IncidentOff bool // an incident is passed over
	StmtOff     bool // changes as statements are passed over
	EndOff      bool // a place inside of a transaction is told as the one behind it
	PreparedOff bool // where a prepared transaction lies is not stored
	UndoneOff   bool // what was rolled back is delivered
	OriginOff   bool // marks of other tasks' writes are not looked at
}
