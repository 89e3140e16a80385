package pipeline

import "fmt"

// DiedError is the error that wraps ErrDied. It says that the process or module behind a Source, Sink or Stage ended
// by itself during a call. The call may be tried again with a new instance; what
// was in flight is charged with the death.
type DiedError struct {
	Connector string // name and version
	Instance  string // reader, or the name of the writer or transform in the task
	Call      string // method that was running
	How       string // exit status or signal, e.g. "signal: segmentation fault"
	LastWords string // last lines of its standard error
	// FirstSeq and LastSeq are the blocks that a writer had been sent and had not
	// acknowledged; 0 = none.
	FirstSeq, LastSeq uint64
}

// Error names the connector, the call and how it ended.
func (e *DiedError) Error() string {
	s := fmt.Sprintf("%s (%s) died during %s: %s", e.Connector, e.Instance, e.Call, e.How)
	if e.FirstSeq != 0 {
		s += fmt.Sprintf(", blocks %d to %d not acknowledged", e.FirstSeq, e.LastSeq)
	}
	if e.LastWords != "" {
		s += ": " + e.LastWords
	}
	return s
}

// Unwrap returns ErrDied.
func (e *DiedError) Unwrap() error { return ErrDied }
